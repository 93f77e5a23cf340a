"""The verbs of the command line, in the order in which they are shown; a study brings its own."""

from __future__ import annotations

from bench.console import values
from bench.console.statuses import CHECK, COMMAND, FAILED, HELD, JUDGED, STUDY, VIOLATED
from bench.console.verb import (
    DURATION,
    JSON,
    OF_A_STUDY,
    ORCHESTRATOR,
    PROVIDER,
    REPORTS,
    RESUME,
    RUN,
    SCALE,
    SCENARIO,
    SCENARIOS,
    SET,
    SHEET,
    Option,
    Verb,
    flag,
    many,
    place,
    text,
)
from bench.studies import backends, compare, devices, matrix, nightly, places, promise, reproduction, services

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

MEASURING = (
    Verb(
        "bench",
        "Run experiments and judge them: does every pod get the bandwidth it was promised?",
        "cli.verbs.experiments:bench",
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
        "plan",
        "Say what a run would be, and how many more nodes would fit; start nothing.",
        "cli.verbs.experiments:plan",
        (SCENARIOS, *RUN),
        alone="scenario",
    ),
    Verb(
        "new",
        "Write a scenario of your own, with comments, to be changed and run.",
        "cli.verbs.scenarios:write_new",
        (
            place("name", "the file to write, as NAME.yaml, and the scenario's name"),
            text(
                "from_",
                "a scenario to begin with, its comments included (default: one that explains itself)",
                values.scenarios,
            ),
        ),
    ),
    promise.VERB,
    nightly.VERB,
)

STUDIES = (
    matrix.VERB,
    places.VERB,
    backends.VERB,
    services.VERB,
    devices.VERB,
    Verb(
        "study",
        "Run several experiments that answer one question together.",
        "studies.verb:run",
        (
            place(
                "name",
                "which study: matrix, places, backends, services, devices, promise, or one that "
                "CONCORDE_EXTENSIONS=FILE brings",
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
        "cli.verbs.experiments:figures",
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
    compare.VERB,
    Verb(
        "pack",
        "Pack a recording into one file, without names of machines and people, to be kept or given away.",
        "cli.verbs.experiments:pack",
        (
            place("run", "a recording's directory or run id", values.runs),
            text("to", "the directory that gets packed.xz and verdicts.json"),
            REPORTS,
        ),
    ),
    reproduction.BUNDLE,
    reproduction.REPRODUCE,
)

ADDRESSES = Verb(
    "addresses",
    "Show nodes' blocks of pod addresses, and how many more fit.",
    "cli.verbs.addresses:show",
    (
        text("scenario", SCENARIO, values.scenarios),
        text("kubeconfig", "of a cluster that exists, instead: FILE[@CONTEXT]; nothing is written there"),
        SET,
        flag("all_", "each node of a large cluster, and not only who waits and the fullest blocks"),
        text("draw", "draw the ranges as SVG into this file, too"),
        JSON,
    ),
    alone="scenario",
)

HINTS = Verb(
    "hints",
    "Say why a service's requests stay in their zone, or do not.",
    "cli.verbs.hints:show",
    (
        place("service", "a Service of a cluster that exists"),
        text("kubeconfig", "of that cluster: FILE[@CONTEXT]; nothing is written there"),
        Option("namespace", "default", "where the service is"),
        text("delays", "seconds between zones, as `edge hints` is told: north:south=0.005,..., or a file"),
        JSON,
    ),
)

TESTBEDS = (
    Verb(
        "up",
        "Bring up a testbed that lasts, to look around in; or virtual machines, to measure on.",
        "cli.verbs.testbeds:bring_up",
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
        "cli.verbs.testbeds:show_status",
        (NAME._replace(help="which testbed (default: all)"), DRAW, JSON),
    ),
    Verb(
        "exec",
        "Run a command in a pod, container or node: exec A-1 ip address.",
        "cli.verbs.testbeds:execute",
        (PLACE, NAME, *OF_ANOTHER),
        command="word",
        ends=COMMAND,
    ),
    Verb(
        "capture",
        "Show the packets of a pod, container or node: capture A-1 tcp port 5201.",
        "cli.verbs.testbeds:capture",
        (PLACE, NAME, Option("interface", "eth0", "one of its network interfaces"), *OF_ANOTHER),
        command="option",
        ends=COMMAND,
    ),
    Verb(
        "iperf",
        "Measure between two pods of a testbed that is up, and judge the sender's promise: iperf A-1 A-4.",
        "cli.verbs.testbeds:measure_between",
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
        "cli.verbs.testbeds:log_in",
        (place("node", "a node of the testbed", values.nodes), NAME, *OF_ANOTHER),
        command="word",
        ends=COMMAND,
    ),
    Verb(
        "kubeconfig",
        "Print a kubeconfig for a cluster of a testbed that is up with --orchestrator kubernetes.",
        "cli.verbs.testbeds:show_kubeconfig",
        (place("cluster", "a cluster of the scenario", values.clusters), NAME),
    ),
    Verb(
        "down",
        "Take a testbed down.",
        "cli.verbs.testbeds:take_down",
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
    ADDRESSES,
    HINTS,
)

MACHINES = (
    Verb(
        "doctor",
        "Say what this machine lacks, and what to do about it.",
        "cli.verbs.machines:examine",
        (JSON,),
        ends=CHECK,
    ),
    Verb(
        "provision",
        "Turn machines into a scenario's Kubernetes clusters; again, to go on or to make sure.",
        "cli.verbs.machines:provision",
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
        "Put what provision --from needs of a kept Kubernetes version into a directory.",
        "cli.verbs.machines:make_bundle",
        (place("to", "the directory"), text("version", "which of the kept versions (default: 1.20.2)")),
    ),
    Verb(
        "kubernetes.get",
        "Provide a Kubernetes version's programs and pods' images, checked, cached.",
        "cli.verbs.machines:get_kubernetes",
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
        "Provide the programs that testbeds run on nodes: Debian's packages, unpacked and not installed.",
        "cli.verbs.machines:get_programs",
    ),
    Verb(
        "deploy.images",
        "Assemble the images for clusters that exist: installer, bench's pods, addresses and services.",
        "cli.verbs.machines:provide_images",
    ),
    Verb(
        "image.build",
        "Assemble the container image in which bench runs, from what is installed here.",
        "cli.verbs.machines:provide_runner",
    ),
    Verb(
        "box.build",
        "Build the virtual machines' box from Debian's packages, as they are pinned.",
        "cli.verbs.machines:build_box",
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
        "cli.completion:show",
        (place("shell", "bash, zsh or fish", values.shells),),
    ),
)

PROJECT = (
    Verb(
        "schema",
        "Write what is made of the code: the JSON Schema of scenarios, the pages of verbs and of rooms.",
        "cli.verbs.scenarios:write_schema",
    ),
    Verb(
        "docs",
        "Build the site of these docs, with all figures; a warning is an error.",
        "cli.verbs.project:docs",
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
        Verb(name, about, f"cli.verbs.project:{function}", options, ends=CHECK, runs_programs=True)
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
