"""What people reported of tools like this one, by kind: said one after the other, then a run, a session and a question."""
import unicodedata
from datetime import timedelta

import pytest
from calls import gnc, made, new_repo, run, state_of
from git_notes_consolidation.consolidation.scan import view
from git_notes_consolidation.core.memory import SAMPLE_NOW, mem
from git_notes_consolidation.core.models import EdgeType
from git_notes_consolidation.store.git import open_repo
from helpers import add_memories, git, rows_of

ROWS = rows_of(__name__)

DAY = timedelta(days=1)
LATER = SAMPLE_NOW + 9 * DAY


@pytest.fixture
def say(tmp_path):
    "Facts, a day apart, each given to `gnc remember`; returns what it said of them, and the repository."
    home = new_repo(tmp_path / "home")
    for key, value in (("user.name", "Tester"), ("user.email", "tester@example.org")): git(home, "config", key, value)
    git(home, "commit", "--quiet", "--allow-empty", "--message=First")

    def said(*facts, namespace="decisions"):
        return home, [gnc("--json", "remember", f, "--namespace", namespace, repo=home, now=SAMPLE_NOW + n * DAY).json
                      for n, f in enumerate(facts)]
    return said


def hidden(home): return {e.edge_type.value for e in state_of(home).edges.values()} & {"supersedes", "duplicate_of", "merged_into"}
def asked(home): return {(r["type"], r.get("kind_of")) for r in state_of(home).reviews.values()}
def first(home, query): return gnc("--json", "recall", query, "--no-count", repo=home, now=LATER).json["results"]
def told(home): return [line for line in gnc("inject", repo=home, now=LATER).out.splitlines() if line[:1].isalnum() or line.startswith("- ")]


OTHER = ROWS["other"]


@pytest.mark.parametrize("pair", OTHER, ids=lambda p: p[1])
def test_a_changed_meaning_is_a_second_record(say, pair):
    home, said = say(*pair)
    assert [r["operation"] for r in said] == ["ADD", "ADD"]
    run(home, LATER)
    assert not hidden(home) and {r.summary for r in view(open_repo(home)).scan.memories} == {*pair}


def test_what_waits_for_an_answer_is_not_decided_by_a_run(say):
    home, _ = say("The crawler opens 12 sockets to each host", "To each host the crawler opens at most 30 sockets now")
    before = asked(home)
    run(home, LATER); run(home, LATER + DAY)
    assert before and asked(home) == before and not hidden(home)


@pytest.mark.parametrize("back", ROWS["there and back again is no repeat"], ids=len)
def test_there_and_back_again_is_no_repeat(say, back):
    home, said = say("Invoices are printed with Typst", "Invoices are printed with LaTeX instead of Typst", *back)
    run(home, LATER)
    assert {r["operation"] for r in said} <= {"ADD", "SUPERSEDE"} and "duplicate_of" not in hidden(home)
    assert first(home, "what are invoices printed with")[0]["summary"] == back[-1]
    assert "LaTeX" not in " ".join(told(home)) and "Typst" in " ".join(told(home))


def test_the_newest_of_three_is_told_and_shown_first(say):
    facts = ["Hotfixes at night are allowed.", "Hotfixes at night are not allowed.", "Hotfixes at night are never allowed."]
    home, _ = say(*facts)
    run(home, LATER)
    found = first(home, "are hotfixes at night allowed")
    assert [r["summary"] for r in found] == facts[::-1] and all(r["newer"] == found[0]["id"] for r in found[1:])
    assert [line[13:] for line in told(home) if "night" in line] == [facts[-1]]  # Without the date


@pytest.mark.parametrize("scope", ["In apps/kiosk", "On Windows", "On Sundays"])
def test_a_scope_in_front_is_another_subject(say, scope):
    home, _ = say("The session timeout is 20 minutes.", f"{scope} the session timeout is 5 minutes.")
    run(home, LATER)
    assert not hidden(home) and not asked(home)
    assert not any(r["newer"] for r in first(home, "session timeout")) and sum("timeout" in line for line in told(home)) == 2


@pytest.mark.parametrize(("fact", "query"), [("我们不再使用 Grunt，打包改用 Vite", "打包"), ("ログは S3 に保存する", "保存"), ("ไฟล์ถูกเก็บใน MinIO", "เก็บ")])
def test_scripts_without_spaces_are_found(say, fact, query):
    home, _ = say("Lunch is at noon", fact)
    assert [r["summary"] for r in first(home, query)] == [fact]


def test_a_resolved_blocker_stands_below_the_open_ones_and_is_not_told(tmp_path):
    done, left = "The launch waits for the signed contract", "The broken importer holds up the launch"
    home = made(tmp_path / "home", [mem(done, namespace="blockers", days_ago=5, status="resolved"), mem(left, namespace="blockers", days_ago=9)])
    for _ in range(2):
        assert [(r["summary"], r["status"]) for r in first(home, "what holds up the launch")] == [(left, "active"), (done, "resolved")]
        shown = gnc("recall", "what holds up the launch", repo=home, now=LATER).out
        assert "resolved" in shown and not asked(home) and [x for x in told(home) if "launch" in x] == [f"- 2026-10-23 {left}."]
        run(home)


@pytest.mark.parametrize("fact", ["ADR-14 Proposed: replace ADR-9\n\nIt would pay if traffic doubles. Turned down in March.",
                                  "Proposal: ADR-14 replaces ADR-9", "ADR-14 (rejected): replace ADR-9"])
def test_a_proposal_replaces_nothing(say, fact):
    home, said = say("ADR-9: Search runs on Solr", fact)
    run(home, LATER)
    assert said[-1]["operation"] == "ADD" and not hidden(home) and not asked(home)


@pytest.mark.parametrize("fact", ["ADR-14: Suche mit Meilisearch\n\nErsetzt ADR-9.", "ADR-14: Recherche avec Meilisearch\n\nRemplace ADR-9.",
                                  "ADR-14 ersetzt ADR-9", "ADR-14: Поиск на Meilisearch\n\nЗаменяет ADR-9."])
def test_a_foreign_word_of_replacement_is_asked_about(say, fact):
    home, _ = say("ADR-9: Search runs on Solr", fact)
    run(home, LATER)
    assert asked(home) == {("supersedes", "full")} and not hidden(home)


@pytest.mark.parametrize("pair", ROWS["a change that no rule is sure of is asked about"], ids=lambda p: p[1])
def test_a_change_that_no_rule_is_sure_of_is_asked_about(say, pair):
    home, _ = say(*pair, namespace="decisions")
    run(home, LATER)
    assert {kind for kind, _ in asked(home)} == {"supersedes"} and not hidden(home)
    there = [r["summary"] for r in first(home, pair[0])]
    assert pair[1] in there[:1 if ("supersedes", "full") in asked(home) else 2]  # Of what is changed in part both hold


@pytest.mark.parametrize("way", ["one by one", "at once", "in two runs"])
def test_back_to_the_first_value_the_third_replaces_the_second(say, tmp_path, way):
    facts = ["The lease is 40 s", "The lease is 70 s", "The lease is 40 s again"]
    if way == "one by one": home, _ = say(*facts)
    else: home = made(tmp_path / "notes", [mem(f, now=SAMPLE_NOW + n * DAY) for n, f in enumerate(facts[:2 if way == "in two runs" else 3])])
    run(home, LATER)
    if way == "in two runs":
        add_memories(home, [mem(facts[2], now=LATER)])
        run(home, LATER + DAY)
    by = {m.id: m.summary for m in view(open_repo(home)).scan.memories}
    over = {(by[e.source_id], by[e.target_id]) for e in state_of(home).edges.values() if e.edge_type == EdgeType.SUPERSEDES}
    assert over == {(facts[1], facts[0]), (facts[2], facts[1])}
    assert first(home, "how long is the lease")[0]["summary"] == facts[2]


@pytest.mark.parametrize(("a", "b"), [(unicodedata.normalize("NFC", "Größe der Übergabe: 3 Züge"), unicodedata.normalize("NFD", "Größe der Übergabe: 3 Züge")),
                                      ("发票用 Typst 打印。", "发票用 Typst 打印")])
def test_the_same_sentence_in_other_bytes_is_one_repeat(say, a, b):
    home, said = say(a, b)
    assert [r["operation"] for r in said] == ["ADD", "NOOP"]


def test_what_is_said_again_is_in_the_notes_under_its_name_and_can_be_taken_back(say):
    home, said = say("Invoices are printed with Typst", "Invoices are printed with LaTeX instead of Typst", *["Invoices are printed with Typst"] * 3)
    there = {m.id: m for m in view(open_repo(home)).scan.memories}
    assert [r["operation"] for r in said[:2]] == ["ADD", "ADD"] and {r["operation"] for r in said[3:]} == {"NOOP"}
    assert {r["memory_id"] for r in said} == there.keys() and said[2]["memory_id"] == said[3]["memory_id"] == said[4]["memory_id"]
    assert gnc("undo", said[2]["run_id"], "--yes", repo=home, now=LATER).code == 0
    assert {m.id: m.status for m in view(open_repo(home)).scan.memories}[said[2]["memory_id"]] == "tombstone"


SWORN = "The mascot for the vault is marmalade"


@pytest.mark.slow(after=1)
@pytest.mark.parametrize("newer", [True, False])
def test_what_is_forgotten_leaves_the_block_the_questions_and_the_quotations(say, newer):
    home, said = say("The mascot for the vault is marmalade", "The mascot for the vault is marzipan now", "Lunch is at noon")
    word, gone = ("marzipan", said[1]) if newer else ("marmalade", said[0])
    run(home, LATER)
    assert asked(home) and (word in " ".join(told(home))) == newer
    gnc("forget", gone["memory_id"], repo=home, now=LATER)
    for _ in range(2):
        for args in (["inject"], ["review", "list"], ["review", "list", "-v"], ["edges", said[0]["memory_id"]], ["edges", said[1]["memory_id"]], ["log"],
                     *(["diff", i] for i in state_of(home).runs)):
            for form in ([], ["--json"]): assert word not in gnc(*form, *args, repo=home, now=LATER).out, args
        run(home, LATER + DAY, full=True)
    gnc("restore", gone["memory_id"], repo=home, now=LATER)
    assert (word in " ".join(told(home))) == newer


def test_a_blocker_that_is_resolved_later_leaves_the_block(say):
    home, said = say("The launch waits for the signed contract", "Lunch is at noon", namespace="blockers")
    run(home, LATER)
    assert "contract" in " ".join(told(home))
    gnc("update", said[0]["memory_id"], "--status", "resolved", repo=home, now=LATER)
    assert "contract" not in " ".join(told(home))


@pytest.mark.parametrize("query", ["billing", "checkout-flow", "open blockers", "cafe", "zanzibar valve"])
def test_what_is_found_by_a_tag_a_spec_a_namespace_or_far_down_is_shown(tmp_path, query):
    home = made(tmp_path / "home", [mem("The printer jams", days_ago=3, tags=("billing",)), mem("Two steps are enough", days_ago=3, spec="checkout-flow"),
                                    mem("No key for the door", days_ago=3, namespace="blockers"), mem("Das Café schließt um acht", days_ago=3),
                                    mem("A long text", "Words of no weight. " * 3000 + "The Zanzibar valve is shut.", days_ago=3)])
    assert first(home, query)


def test_what_is_forgotten_is_shown_by_nothing(say):
    home, said = say(SWORN, "Lunch is at noon")
    old = said[0]["memory_id"]
    gnc("remember", "The mascot for the vault is changed daily", "--supersedes", old, repo=home, now=SAMPLE_NOW + 3 * DAY)
    told_by = [r["memory_id"] for r in said]
    assert SWORN in gnc("forget", old, repo=home, now=LATER).out  # It says what
    for args in (["log"], ["history", old], ["explain", old], ["explain", told_by[1]], ["recall", "--mode", "exhaustive", "mascot vault"],
                 ["recall", "what was the mascot before"], ["review", "list", "-v"], ["inject"], ["status"], ["tiers", "--show", "archived"]):
        for form in ([], ["--json"]):
            shown = gnc(*form, *args, repo=home, now=LATER)
            assert shown.code == 0 and "marmalade" not in shown.out + shown.err, args
    gnc("restore", old, repo=home, now=LATER)
    assert SWORN in gnc("history", old, repo=home, now=LATER).out


def test_what_was_not_stored_is_seen_in_the_log_and_in_exhaustive_recall(say):
    home, said = say("The mirror holds 40 GB", "the mirror holds 40 gb!")
    assert said[1]["operation"] == "NOOP"
    assert "the mirror holds 40 gb!" in gnc("log", repo=home, now=LATER).out
    assert "the mirror holds 40 gb!" in gnc("recall", "mirror", "--mode", "exhaustive", repo=home, now=LATER).out
    gnc("forget", said[0]["memory_id"], repo=home, now=LATER)
    assert "40 gb" not in gnc("log", repo=home, now=LATER).out.lower()


def test_what_has_nothing_to_do_with_the_question_is_not_shown_and_not_used(say):
    home, _ = say("Invoices are printed with Typst", "The poller opens 12 sockets to each host")
    assert "Nothing found." in gnc("recall", "which team won the cup in Reykjavik", repo=home, now=LATER).out
    run(home, LATER)
    assert not state_of(home).accesses
