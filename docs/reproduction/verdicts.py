"""verdicts.py [--check] - the verdicts in README.md, from the reports beside it.

A verdict in README.md is written as "gmm-code G1: holds" or, for another reading of a method, "gmm-code G5b (VIMCO with log K):
does not hold". Without --check the words behind the colon are replaced by those of gmm-code/claims.json, or by "not yet run" if there
is no such file. With --check nothing is written: prints TAP, and fails if a verdict differs, if README.md names a claim that a report
does not have, or if a claim of the program (apps/paper) or a reading in a report is not in README.md.
"""
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
WORDS = ["holds", "undecided", "does not hold", "not enough runs", "not yet run"]
VERDICT = re.compile(r"\b((?:gmm|pcfg|air|sbn)(?:-[a-z]+)*) ([A-Z]\d+[a-z]?)( \([^()]*\))?: (%s)" % "|".join(WORDS))


def read_reports():
    """{experiment: {(claim, variant): verdict}}"""
    reports = {}
    for path in sorted(HERE.glob("*/claims.json")):
        claims = json.loads(path.read_text())
        if claims and "settings" in claims[0]:
            reports[path.parent.name] = {(c["claim"], c["variant"] or ""): c["verdict"] for c in claims}
    return reports


def claims_of_program():
    names = set()
    for path in sorted((HERE.parent.parent / "apps" / "paper").glob("*.c")):
        names.update(re.findall(r'^    \{"([A-Z]\d+[a-z]?)",\s', path.read_text(), re.M))
    return names


def main():
    readme, reports, wrong, seen = HERE / "README.md", read_reports(), [], set()

    def verdict_of(match):
        experiment, claim, variant = match[1], match[2], (match[3] or "").strip(" ()")
        seen.add((experiment, claim, variant))
        if experiment not in reports:
            word = "not yet run"
        else:
            word = reports[experiment].get((claim, variant))
            if word is None:
                wrong.append(f"{experiment} has no claim {claim} {variant}")
                word = match[4]
        if word != match[4]:
            wrong.append(f"{match[0]}, but the report says: {word}")
        return f"{experiment} {claim}{match[3] or ''}: {word}"

    text = readme.read_text()
    new = VERDICT.sub(verdict_of, text)
    for name in sorted(claims_of_program() - {claim for _, claim, _ in seen}):
        wrong.append(f"README.md does not name {name}")
    for experiment, claims in reports.items():
        for claim, variant in claims:
            if (experiment, claim, variant) not in seen and not variant:
                wrong.append(f"README.md does not name {experiment} {claim}")
    if "--check" not in sys.argv:
        readme.write_text(new)
        return 0
    print("1..1")
    print("%sok 1 - the verdicts of the table of coverage are those of the reports" % ("not " if wrong else ""))
    for line in wrong:
        print("#", line)
    return 1 if wrong else 0


sys.exit(main())
