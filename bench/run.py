"""Run every benchmark, print the tables and write the results as JSON.

python -m bench.run                      all of them, into bench-results/<date>.json
python -m bench.run traversal teams      those whose name contains one of the words
python -m bench.run --list               what there is
python -m bench.compare OLD.json NEW.json    two such files side by side
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import traceback
from pathlib import Path

from bench import harness
from matchwood import EngineUnavailable

HERE = Path(__file__).resolve().parent


def names() -> list[str]:
    """Module names of all benchmark files: those with a function `run`."""
    files = [path for path in sorted(HERE.rglob("*.py")) if "\ndef run(" in path.read_text()]
    return [".".join(("bench", *path.relative_to(HERE).with_suffix("").parts)) for path in files]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="bench", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", help="run only benchmarks whose name has one of these")
    parser.add_argument("--list", action="store_true", help="list the benchmarks and stop")
    parser.add_argument("--json", type=Path, help="where to write the results")
    options = parser.parse_args(arguments)
    chosen = [
        name for name in names() if not options.words or any(w in name for w in options.words)
    ]
    if options.list or not chosen:
        print("\n".join(chosen or ["no benchmark has such a name; there are", *names()]))
        return 0 if chosen else 2
    results, broken = [], []
    for name in chosen:
        print(f"\n{name}\n{'=' * len(name)}", flush=True)
        try:
            for result in importlib.import_module(name).run():
                content = result if isinstance(result, dict) else vars(result)
                results.append({"benchmark": name, **content})
        except EngineUnavailable as error:
            print(f"left out: {error}")
        except Exception:  # one that breaks must not take the others with it
            traceback.print_exc()
            broken.append(name)
    today = datetime.date.today().isoformat()
    path = options.json or harness.ROOT / "bench-results" / f"{today}.json"
    harness.write(results, path)
    print(f"\nwritten: {path}")
    for name in broken:
        print(f"broken: {name}")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
