"""Copy results/table5.md into README.md, between its two table5 marks."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"(<!-- table5: begin.*? -->\n).*?(<!-- table5: end -->)", re.DOTALL)


def main() -> None:
    readme = ROOT / "README.md"
    table = (ROOT / "results/table5.md").read_text(encoding="utf-8").strip()
    text, found = BLOCK.subn(lambda marks: f"{marks[1]}{table}\n{marks[2]}", readme.read_text(encoding="utf-8"))
    if found != 1:
        raise SystemExit(f"README.md has {found} blocks between table5 marks, expected one")
    readme.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
