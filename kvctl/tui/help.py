"""The page behind `?`: keys and commands, from the same tables that make them work."""

from textual.content import Content

from kvctl.actions import SESSION_ACTIONS, allowed
from kvctl.tui.bars import legend

_MOVING = (
    ("1 2 3", "engines, sessions, events"),
    ("↑ ↓ j k", "move; g and G go to the ends"),
    ("enter", "open the session under the cursor"),
    ("esc", "back; clears the filter"),
    ("/", "filter; on events also kind=evict session=NAME request=ID engine=NAME"),
    (":", "any command by name: :sessions, :pin device 30m, :theme ansi-dark, :quit"),
    ("q", "quit"),
)


def help_page(read_only: bool) -> Content:
    lines = [Content.assemble((f"{key:9}", "bold"), text) for key, text in _MOVING]
    lines.append(Content(""))
    for action in SESSION_ACTIONS:
        off = not allowed(action, read_only)
        lines.append(
            Content.assemble(
                (f"{action.key:4}", "dim" if off else "bold"),
                (f":{action.name:10}", "dim" if off else ""),
                (action.summary + ("   (read-only)" if off else ""), "dim"),
            )
        )
    lines += [Content(""), Content.assemble("pages by the fastest tier that has them: ", legend())]
    return Content("\n").join(lines)
