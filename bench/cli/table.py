"""The verbs of the command line: one row for each, with its options, what does it, and how it ends.

Help, completion, what invoke is told and what is refused are made of these rows. What does a verb is named,
and imported when it is run: a list, a mistake or a pressed key costs none of it, nor a package of others.
"""

from __future__ import annotations

from typing import NamedTuple

from bench.cli import statuses, values
from bench.cli.statuses import CHANGED, CHECK, COMMAND, COMPARED, FAILED, HELD, JUDGED, STUDY, VIOLATED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# The short form of an option, whichever verb has it; h, l, R and V are the program's own (bench.cli.program).
SHORT = {
    "all_": "a",
    "duration": "d",
    "enforcement": "e",
    "interface": "i",
    "json": "j",
    "kubeconfig": "k",
    "name": "n",
    "orchestrator": "o",
    "provider": "p",
    "repetitions": "r",
    "scenario": "s",
    "to": "t",
}
MANY: tuple[str, ...] = ()  # the default of an option that may be repeated


class Option(NamedTuple):
    """An option of a verb; or, as a place, a word that it needs."""

    name: str  # of the function's parameter
    default: str | int | float | tuple[str, ...] | None  # its type is the value's; None: a text, or None
    help: str
    values: Callable[[], list[str]] = values.nothing  # for completion
    place: bool = False
    into: str = ""  # the parameter, a mapping, that has it if it was given; empty: it is one itself

    @property
    def kind(self) -> type:
        """The type of its value; a list's members are texts."""
        if self.default is None:
            return str
        return list if isinstance(self.default, tuple) else type(self.default)

    @property
    def takes_value(self) -> bool:
        """Whether a value follows it."""
        return self.kind is not bool

    @property
    def flag(self) -> str:
        """How it is typed."""
        return f"--{self.name.strip('_').replace('_', '-')}"

    @property
    def short(self) -> str:
        """Its letter; empty if it has none."""
        return "" if self.place else SHORT.get(self.name, "")


class Verb(NamedTuple):
    """A verb: a function below ``bench.cli``, as module:name, that gets the options and returns a status."""

    name: str
    about: str
    function: str
    options: tuple[Option, ...] = ()  # with JSON the function gets as ``document`` one to fill in
    alone: str = ""  # the option that words alone are values of; many, where it takes many
    plans: bool = False  # with --dry it is called all the same, as ``dry``, and says what would be done
    study: str = ""  # what the function is told as ``name``
    command: str = ""  # a command follows a place: begun by a "word", or also by an "option" of its own
    ends: statuses.Ends = statuses.DONE
    of_the_repository: bool = False  # not there where that is not
    runs_programs: bool = False  # the function gets invoke's context, and ends as the programs do

    def typed(self) -> dict[str, Option]:
        """Return its options as they are typed, in each form."""
        short = {f"-{option.short}": option for option in self.options if option.short}
        return {option.flag: option for option in self.options} | short

    def valued(self) -> set[str]:
        """Return those of them that a value follows."""
        return {form for form, option in self.typed().items() if option.takes_value}

    def places(self) -> list[Option]:
        """Return the words that it needs, in order."""
        return [option for option in self.options if option.place]


def flag(name: str, about: str) -> Option:
    """Return an option that is there or not."""
    return Option(name, False, about)


def text(name: str, about: str, known: Callable[[], list[str]] = values.nothing, into: str = "") -> Option:
    """Return an option that is a text; empty where it was not given."""
    return Option(name, "", about, known, into=into)


def many(name: str, about: str, known: Callable[[], list[str]] = values.nothing) -> Option:
    """Return an option that may be repeated."""
    return Option(name, MANY, about, known)


def place(name: str, about: str, known: Callable[[], list[str]] = values.nothing) -> Option:
    """Return a word that a verb needs."""
    return Option(name, "", about, known, place=True)


SCENARIO = "a scenario's name or file, or a recording of one"
SET = many("set_", "override one field, as in flows[0].duration=5; may be repeated", values.settings)
SCALE = Option("scale", 1.0, "multiply every rate, as in 0.1")
DURATION = text(
    "duration", "seconds that the traffic takes, all of it in proportion (default: the scenario's)"
)
PROVIDER = Option(
    "provider",
    "netns",
    "where nodes come from: netns, ssh:INVENTORY, ssh with addresses in the scenario, or vagrant",
    values.providers,
)
ORCHESTRATOR = Option(
    "orchestrator", "cni", f"what runs the pods: {', '.join(values.orchestrators())}", values.orchestrators
)
REPORTS = Option("reports", "reports", "directory of the recordings")
JSON = flag("json", "one JSON document on standard output; what people are told goes to standard error")
SHEET = (
    text(
        "preset",
        "draw for a column (3.5in), a page (7in) or a slide (10in, in text of 12 points)",
        into="size",
    ),
    text("width", "how wide figures are, as in 3.5in, 89mm, 8.9cm or 252pt", into="size"),
    text("font_size", "points of their text, as in 8", into="size"),
    text("format", "which of svg, pdf, png, as in pdf,png (default: all)", into="size"),
)
RUN = (SET, SCALE, PROVIDER, ORCHESTRATOR, REPORTS)
RESUME = text(
    "resume", "go on with an interrupted study, as it was begun: its directory or name", values.unfinished
)
OF_A_STUDY = (*RUN, JSON, RESUME)
SCENARIOS = many("scenario", f"{SCENARIO}; may be repeated (default: the paper's two)", values.scenarios)
DRAW = text(
    "draw", "draw nodes, zones, clusters, pods and promises on the terminal, and as SVG into this file"
)
NAME = text(
    "name", "which testbed, if several are up (default: the usual one, or the only one)", values.names
)
OF_ANOTHER = (
    text(
        "provider",
        "what else is meant than a testbed by its name: ssh:INVENTORY, ssh with addresses in the "
        "scenario, vagrant",
        values.providers,
    ),
    text(
        "scenario",
        "with --provider: the scenario that has the machines, or their addresses",
        values.scenarios,
    ),
)
PLACE = place("place", "a pod, container or node", values.places)
OF_A_SHARE = (
    Option("percent", 100, "how much of the full counts, and of the cases; CONCORDE_SEED says which cases"),
    Option("shard", "1/1", "a part of them: 2/4 is the second of four"),
)


def choice(
    name: str,
    default: str | int | tuple[str, ...],
    about: str,
    known: Callable[[], list[str]] = values.nothing,
) -> Option:
    """Return an option that a study alone has."""
    return Option(name, default, about, known, into="choices")


def study(name: str, about: str, *own: Option, alone: str, ends: statuses.Ends = STUDY) -> Verb:
    """Return the verb of a study: with its own options it takes those of every study."""
    return Verb(
        name, about, "verbs.studies:run", (*own, *OF_A_STUDY), alone, plans=True, study=name, ends=ends
    )


MEASURING = (
    Verb(
        "bench",
        "Run experiments and judge them: does every pod get the bandwidth it was promised?",
        "verbs.experiments:bench",
        (
            SCENARIOS,
            SET,
            many(
                "kubeconfig", "run on a cluster that exists: [CLUSTER=]FILE[@CONTEXT]; one for each cluster"
            ),
            Option(
                "scale",
                "1",
                "multiply every rate, as in 0.1; auto: the largest of 1, 0.5, 0.2 and 0.1 at which this "
                "machine can tell",
            ),
            DURATION,
            text(
                "enforcement",
                "the network: none, pod, node, bandwidth, another of scenarios/networks, or a file "
                "(default: the scenario's)",
                values.networks,
            ),
            Option("repetitions", None, "how often each scenario's traffic runs (default: the scenario's)"),
            PROVIDER,
            ORCHESTRATOR,
            REPORTS,
            RESUME._replace(help="go on with an interrupted run, as it was begun: its directory or run id"),
            Option(
                "retry",
                4,
                "how many further runs at most if one is invalid because of the machine: once more, then at "
                "0.5, 0.2, 0.1 of every rate, for 3 minutes in all; 0: none",
            ),
            JSON,
        ),
        alone="scenario",
        plans=True,
        ends=JUDGED,
    ),
    Verb(
        "new",
        "Write a scenario of your own, with comments, to be changed and run.",
        "verbs.scenarios:write_new",
        (
            place("name", "the file to write, as NAME.yaml, and the scenario's name"),
            text(
                "from_",
                "a scenario to begin with, its comments included (default: one that explains itself)",
                values.scenarios,
            ),
        ),
    ),
    study(
        "promise",
        "Ask a network which promises it keeps: limits, floors, latency; 1 if one is broken that it claims.",
        choice("network", "", "which network is asked (default: node)", values.networks),
        choice(
            "link",
            "",
            "rate of each node's link (default: what each check has; of clusters that exist: yours)",
        ),
        choice(
            "attack_own_pods",
            False,
            "on clusters that exist too, let one of the kit's pods forge frames as fast as it can; the "
            "kit's own pods and the nodes' tables are its targets",
        ),
        choice(
            "profile",
            MANY,
            f"{', '.join(values.profiles())}; may be repeated (default: all)",
            values.profiles,
        ),
        choice(
            "check",
            MANY,
            "one check by its name; may be repeated (default: the profiles' own; attacks, of which "
            "some-attacks tries some, only by its name)",
        ),
        many("kubeconfig", "ask clusters that exist: [CLUSTER=]FILE[@CONTEXT]; one for each cluster"),
        alone="network",
        ends={**JUDGED, HELD: "every promise that is claimed was kept", VIOLATED: "one was broken"},
    ),
    Verb(
        "nightly",
        "Do the guarantees still hold, and as well as in the nights before?",
        "verbs.nightly:judge",
        (
            SCENARIOS,
            SET,
            many(
                "replay",
                "do all but run, from a recording: its directory, run id, or packed file; may be repeated",
                values.runs,
            ),
            SCALE._replace(default=0.1),
            DURATION,
            Option("repetitions", 5, "how often each scenario's traffic runs"),
            Option("history", "reports/history", "the directory of the machines' histories"),
            Option(
                "to",
                "reports/nightly",
                "the directory of nightly.md, junit.xml, bigger.json, smaller.json and trend.html",
            ),
            text("acknowledged", "the file of changes that are as they should be (default: nightly.yaml)"),
            flag("machine", "print which machine this is, as its history is called, and nothing else"),
            PROVIDER,
            ORCHESTRATOR,
            REPORTS,
        ),
        alone="scenario",
        plans=True,
        ends={**JUDGED, CHANGED: "something is worse than in the nights before, and not acknowledged"},
    ),
)

STUDIES = (
    study(
        "matrix",
        "Compare enforcements: the same scenarios with each of them, in one table, figure and page.",
        choice(
            "scenario",
            MANY,
            f"{SCENARIO}; may be repeated (default: contmec, congested and latency)",
            values.scenarios,
        ),
        choice(
            "enforcement",
            MANY,
            "none, bandwidth, pod, node; may be repeated (default: all)",
            values.networks,
        ),
        choice("repetitions", 1, "of each cell, in blocks: every cell once, in a random order"),
        choice("seed", 0, "of that order (default: 0)"),
        flag(
            "gate",
            "exit status 1 if a case that shall hold is violated, 3 if one of them is invalid, else 0",
        ),
        DURATION,
        alone="scenario",
    ),
    study(
        "places",
        "Measure at which interface bandwidth can be guaranteed: what the paper's section 3.2 argues.",
        choice(
            "place",
            MANY,
            "physical, vtep, bridge, bridge-veth, eth0, node; may be repeated (default: all)",
            values.interfaces,
        ),
        DURATION,
        alone="place",
    ),
    study(
        "backends",
        "Measure every backend that this machine can run: what it costs, and how soon it knows of a change.",
        choice(
            "backend",
            MANY,
            "one backend, or one of its settings; may be repeated (default: all that there are)",
            values.backends,
        ),
        choice(
            "part",
            MANY,
            "guarantee, round-trip, throughput, cost, first, nodes; may be repeated (default: all)",
        ),
        choice(
            "nodes",
            MANY,
            "how many nodes a cluster has in the last part; may be repeated (default: 3, 10, 30, 60)",
        ),
        choice(
            "repetitions",
            "",
            "how often each is measured but the nodes (default: 12 throughput, 5 cost and first)",
        ),
        choice("seed", "", "of the order in which backends take turns (default: 0)"),
        alone="backend",
    ),
    Verb(
        "study",
        "Run several experiments that answer one question together.",
        "verbs.studies:run",
        (
            place(
                "name",
                "which study: matrix, places, backends, promise, or one that CONCORDE_EXTENSIONS=FILE brings",
                values.studies,
            ),
            many("choose", "what the study alone may be asked for, as KEY=VALUE; may be repeated"),
            DURATION,
            *OF_A_STUDY,
        ),
        plans=True,
        ends=STUDY,
    ),
)

RECORDINGS = (
    Verb(
        "figures",
        "Make samples, summary, figures and report again from a recording alone; figures of other sizes, "
        "too.",
        "verbs.reproduction:figures",
        (
            text("run", "a recording or a study: its directory, run id, packed file, or latest", values.runs),
            flag("all_", "those of every recording and study, packed or not"),
            flag(
                "check",
                "with --all: write nothing, and name each file that is not what follows from its recording",
            ),
            *SHEET,
            REPORTS,
            JSON,
        ),
        alone="run",
        ends={**JUDGED, VIOLATED: "a promise was broken; with --check: a file does not follow"},
    ),
    Verb(
        "compare",
        "Compare two runs: is each flow's mean the same, better or worse? And draw both in one figure.",
        "verbs.compare:compare",
        (
            place(
                "one",
                "a recording, a matrix, or a directory of them, packed or not: its path or name",
                values.runs,
            ),
            place("other", "another one, to be compared with it", values.runs),
            flag("across_machines", "compare what was measured on different machines, too"),
            *SHEET,
            JSON,
            REPORTS,
        ),
        ends=COMPARED,
    ),
    Verb(
        "pack",
        "Pack a recording into one file, without names of machines and people, to be kept or given away.",
        "verbs.experiments:pack",
        (
            place("run", "a recording's directory or run id", values.runs),
            text("to", "the directory that gets recording.tar.xz and summary.json"),
            REPORTS,
        ),
    ),
    Verb(
        "bundle",
        "Make one archive to deposit: the source at its commit, the recordings, what they are, and digests.",
        "verbs.reproduction:bundle",
        (
            place("to", "the archive, as in bundle.tar.xz"),
            many(
                "run",
                "a recording or a study of yours to put in besides: its directory or run id; may be repeated",
                values.runs,
            ),
            REPORTS,
        ),
        of_the_repository=True,
    ),
    Verb(
        "reproduce",
        "Do the docs' claims come out again? Print what is expected beside what is observed.",
        "verbs.reproduction:reproduce",
        (
            many("claim", "which; may be repeated (default: all that need no machines of their own)"),
            flag("recorded", "from the recordings that are kept, in seconds and without root"),
            flag("quick", "at a tenth of the rates, in five minutes"),
            flag("list_", "list the claims, with the commands that measure them"),
            Option("seed", 1, "of the order in which experiments are made"),
            REPORTS,
        ),
        alone="claim",
        ends={**JUDGED, HELD: "every claim came out again", VIOLATED: "one did not"},
        of_the_repository=True,
    ),
)

TESTBEDS = (
    Verb(
        "up",
        "Bring up a testbed that lasts, to look around in; or virtual machines, to measure on.",
        "verbs.testbeds:bring_up",
        (
            SET,
            many("kubeconfig", "in a cluster that exists: [CLUSTER=]FILE[@CONTEXT]; one for each cluster"),
            Option("scenario", "contmec", SCENARIO, values.scenarios),
            Option("name", None, "what it is called; several may be up side by side"),
            SCALE,
            PROVIDER._replace(help="netns, or vagrant: virtual machines, made or started"),
            ORCHESTRATOR,
            DRAW,
        ),
        alone="scenario",
        plans=True,
    ),
    Verb(
        "status",
        "Show the testbeds that are up.",
        "verbs.testbeds:show_status",
        (NAME._replace(help="which testbed (default: all)"), DRAW, JSON),
    ),
    Verb(
        "exec",
        "Run a command in a pod, container or node: exec A-1 ip address.",
        "verbs.testbeds:execute",
        (PLACE, NAME, *OF_ANOTHER),
        command="word",
        ends=COMMAND,
    ),
    Verb(
        "capture",
        "Show the packets of a pod, container or node: capture A-1 tcp port 5201.",
        "verbs.testbeds:capture",
        (PLACE, NAME, Option("interface", "eth0", "one of its network interfaces"), *OF_ANOTHER),
        command="option",
        ends=COMMAND,
    ),
    Verb(
        "iperf",
        "Measure between two pods of a testbed that is up, and judge the sender's promise: iperf A-1 A-4.",
        "verbs.testbeds:measure_between",
        (
            place("source", "the pod that sends", values.pods),
            place("destination", "the pod that receives", values.pods),
            NAME,
            Option("duration", "5", "seconds of traffic"),
            text(
                "provider",
                "what else is meant than a testbed by its name, as existing:FILE",
                values.providers,
            ),
            JSON,
        ),
        ends={**JUDGED, HELD: "the promise was kept, or there is none", FAILED: "the pods cannot be entered"},
    ),
    Verb(
        "ssh",
        "Open a shell on a node, or run a line in one: ssh worker-01 'tc -s class show dev eth0 | head'.",
        "verbs.testbeds:log_in",
        (place("node", "a node of the testbed", values.nodes), NAME, *OF_ANOTHER),
        command="word",
        ends=COMMAND,
    ),
    Verb(
        "kubeconfig",
        "Print a kubeconfig for a cluster of a testbed that is up with --orchestrator kubernetes.",
        "verbs.testbeds:show_kubeconfig",
        (place("cluster", "a cluster of the scenario", values.clusters), NAME),
    ),
    Verb(
        "down",
        "Take a testbed down.",
        "verbs.testbeds:take_down",
        (
            NAME,
            text(
                "provider",
                "ssh:INVENTORY takes away what runs have left there; vagrant switches machines off",
                values.providers,
            ),
            text(
                "scenario",
                "with ssh the scenario that has the machines' addresses, with vagrant the machines' own",
                values.scenarios,
            ),
            flag("destroy", "with vagrant: remove the machines, with all that is on them"),
        ),
    ),
)

MACHINES = (
    Verb(
        "doctor",
        "Say what this machine lacks, and what to do about it.",
        "verbs.machines:examine",
        (JSON,),
        ends=CHECK,
    ),
    Verb(
        "provision",
        "Turn machines into a scenario's Kubernetes clusters; again, to go on or to make sure.",
        "verbs.machines:provision",
        (
            place(
                "provider", "ssh:INVENTORY, ssh with addresses in the scenario, or vagrant", values.providers
            ),
            SET,
            Option(
                "scenario", "contmec", "the scenario whose nodes and clusters they become", values.scenarios
            ),
            SCALE,
            text(
                "from_",
                "a directory made by kubernetes.bundle; without one programs are kept ones, or downloaded",
            ),
            text("version", "which Kubernetes, if not that of the directory, or a current one"),
            flag("reset", "take away what provisioning has made"),
        ),
    ),
    Verb(
        "kubernetes.bundle",
        "Put what machines need of a kept Kubernetes version into a directory, for provision --from.",
        "verbs.machines:make_bundle",
        (place("to", "the directory"), text("version", "which of the kept versions (default: 1.20.2)")),
    ),
    Verb(
        "kubernetes.get",
        "Provide the programs of a Kubernetes version and the pods' images, checked and cached.",
        "verbs.machines:get_kubernetes",
        (
            text("version", "which Kubernetes (default: 1.20.2)"),
            text("from_", "a directory that has the programs already"),
            flag("download", "download the official release, checked by its published checksums"),
            flag("build", "build it from Debian's source package, in some 5 minutes"),
            text(
                "flannel",
                "a flanneld program, for the overlays from now on; none: the testbed makes them again",
            ),
        ),
    ),
    Verb(
        "programs.get",
        "Provide the programs that backends run on nodes: Debian's packages, unpacked and not installed.",
        "verbs.machines:get_programs",
    ),
    Verb(
        "deploy.images",
        "Assemble the images for clusters that exist: the installer's and those of bench's pods.",
        "verbs.machines:provide_images",
    ),
    Verb(
        "image.build",
        "Assemble the container image in which bench runs, from what is installed here.",
        "verbs.machines:provide_runner",
    ),
    Verb(
        "box.build",
        "Build the virtual machines' box from Debian's packages, as they are pinned.",
        "verbs.machines:build_box",
        (
            text("to", "the directory of the box (default: in the cache)"),
            text("version", "its version, as in 12.0.1 (default: the time)"),
            flag("upgrade", "take the packages that the mirror has now, and pin those"),
            text("mirror", "URL of a mirror of Debian (default: this machine's, as its apt sources say)"),
            text("security", "URL of a mirror of Debian's security updates (default: this machine's)"),
        ),
    ),
    Verb(
        "completion",
        "Print what lets your shell complete lines: source <(./invokew completion bash).",
        "completion:show",
        (place("shell", "bash, zsh or fish", values.shells),),
    ),
)

PROJECT = (
    Verb(
        "schema",
        "Write what is made of the code: the JSON Schema of scenarios, and the page of all verbs.",
        "verbs.scenarios:write_schema",
    ),
    Verb(
        "docs",
        "Build the site of these docs, with all figures; a warning is an error.",
        "verbs.project:docs",
        (
            flag(
                "links",
                "look whether the links to elsewhere lead somewhere, and build nothing; needs a network",
            ),
            text("to", "the directory of the site (default: build/site of the checkout)"),
        ),
        runs_programs=True,
    ),
    *(
        Verb(name, about, f"verbs.project:{function}", options, ends=CHECK, runs_programs=True)
        for name, about, function, options in (
            ("lint", "Check style, types, and which part imports which.", "lint", ()),
            ("test.setup", "Install the packages that all tests need, and do no more.", "set_up_tests", ()),
            (
                "test",
                "Check everything the project promises; needs no network and, with user namespaces, no root.",
                "test",
                (),
            ),
            (
                "test.long",
                "Check at full length what test checks a part of; each count can be set by its variable.",
                "long_tests",
                OF_A_SHARE,
            ),
            (
                "test.alone",
                "Check at full length, one after another, what is judged by a rate or a time; needs an idle "
                "machine.",
                "lone_tests",
                OF_A_SHARE,
            ),
            (
                "test.e2e",
                "Check real Kubernetes, from its programs - built, if there are none - to both scenarios; "
                "needs root.",
                "e2e_tests",
                (
                    flag("alone", "only what judges a rate or a time"),
                    flag("beside", "only what may run beside other tests"),
                ),
            ),
            (
                "test.vm",
                "Check virtual machines from their box - built, if there is none - to their end; needs root "
                "and time.",
                "test_vm",
                (),
            ),
        )
    ),
)

# In the order in which they are shown; all that is about the repository is left out where that is not.
GROUPS: dict[str, tuple[Verb, ...]] = {
    title: tuple(verb for verb in verbs if values.CHECKOUT or not verb.of_the_repository)
    for title, verbs in {
        "Measuring: does a pod get what it was promised?": MEASURING,
        "Studies: several experiments that answer one question together.": STUDIES,
        "What was recorded: shown, compared, kept, given away.": RECORDINGS,
        "Testbeds that stay up, to look around in.": TESTBEDS,
        "This machine and others: what they need.": MACHINES,
        "The project itself.": tuple(verb._replace(of_the_repository=True) for verb in PROJECT),
    }.items()
}
VERBS: dict[str, Verb] = {verb.name: verb for verbs in GROUPS.values() for verb in verbs}
