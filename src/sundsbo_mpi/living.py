"""One agent's run, from one loss of other agents to the next; most runs have no such loss."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sundsbo_mpi import startup
from sundsbo_mpi.agent import Position
from sundsbo_mpi.agreement import on_root
from sundsbo_mpi.checkpoint import Folder, Manifest, Saver
from sundsbo_mpi.checkpoint.resuming import load
from sundsbo_mpi.comm import world
from sundsbo_mpi.comm.alignment import align
from sundsbo_mpi.diagnosis import Diagnosis
from sundsbo_mpi.errors import AgreedError, DivergedError
from sundsbo_mpi.evaluation import Evaluation
from sundsbo_mpi.health import NotFiniteError
from sundsbo_mpi.introduction import facts_of_agents, introduce, were_lost
from sundsbo_mpi.metrics import assembled
from sundsbo_mpi.observing import Recording, RunObserver, keep_final, spent, take_up
from sundsbo_mpi.progress import Reporter
from sundsbo_mpi.recording import Recorder
from sundsbo_mpi.runfile import Event
from sundsbo_mpi.tracing import TraceFile, Tracer

if TYPE_CHECKING:
    from sundsbo_mpi.agent import Agent, End
    from sundsbo_mpi.comm.survivors import Survivors
    from sundsbo_mpi.comm.tally import Tally
    from sundsbo_mpi.control import Control
    from sundsbo_mpi.preparation import Prepared
    from sundsbo_mpi.tasks.base import Task
    from sundsbo_mpi.watchdog import Watchdog


class Run:
    """One agent's run; making it and ``live`` are collective.

    Args:
        prepared: What is to be done.
        site: Where this rank runs.
        task: The agent's problem.
        control: The exchange of words.
        everyone: All who take part in the beginning.
    """

    def __init__(
        self,
        prepared: Prepared,
        site: startup.Site,
        task: Task,
        control: Control,
        everyone: Survivors,
    ) -> None:
        self._begun, self._site, self._task, self._control = prepared, site, task, control
        tally, config = everyone.tally, prepared.config
        shared = everyone.watch is not None  # any rank may have to go on with the run file
        self._facts = facts_of_agents(tally, site, task, shared=shared)
        self._hosts = dict(zip(everyone.agents, site.local.hosts, strict=True))
        self._tracer = _tracer(prepared, everyone, site)
        self._at: Position | None = None
        self._path: str | None = None
        self._folder = Folder(Path(at)) if (at := config.output.checkpoint) else None
        self._agents = self._linked = everyone.agents  # as written down, and as connected
        self.agent: Agent | None = None
        """The agent, once it is connected."""
        self.recorder: Recorder | None = None
        """Of this rank, if it is the one that writes the run file."""
        self.reporter = Reporter(tally.is_root, config.run.iterations)
        """Of this rank; silent on all but one."""

    @property
    def lacks_rank_0(self) -> bool:
        """Whether rank 0 was lost."""
        return self._linked[0] != self._begun.about.numbers[0]

    def live(self, here: Survivors, watchdog: Watchdog) -> End:
        """Do what is left to do with those who are here."""
        first = here.agents == tuple(self._begun.about.numbers)
        prepared = self._connect(here)
        agent, tally = self.agent, here.tally
        assert agent is not None
        begin = self._resumed(prepared) if first else self._gone_on(prepared, here)
        saver = self._saver(prepared, tally, None if begin is None else begin.done)
        diagnosis = Diagnosis(prepared.config, agent.algorithm, prepared.weights, self._task)
        record = Recording(agent, self.recorder, self.reporter, diagnosis, self._tracer, self._note)
        evaluation = self._evaluation(here, record)
        observer = RunObserver(agent, here.agents, evaluation, saver, record, watchdog, self._stand)
        with self.reporter:
            if begin is not None and agent.evaluates(begin.done):
                last = tally.tell(self.recorder.last if self.recorder else None)
                if last < begin.done:  # whoever measured here was lost meanwhile
                    observer.evaluate(begin)
            end = self._iterate(observer, begin, diagnosis)
        self._keep(tally, end)
        return end

    def _iterate(self, observer: RunObserver, begin: Position | None, diagnosis: Diagnosis) -> End:
        """Do the iterations."""
        try:
            return observer.agent.run(observer, begin)
        except DivergedError as error:
            if self._tracer is not None:
                with suppress(AgreedError):  # to have diverged is the graver trouble
                    self.reporter.note(*self._tracer.finish())
            if isinstance(error, NotFiniteError):
                raise diagnosis.explain(error, observer.agent.tally) from None
            raise

    def _connect(self, here: Survivors) -> Prepared:
        """Make the agent, linked with those who are here."""
        algorithm = startup.build_algorithm(self._begun.config, self._begun.about.agents)[0]
        prepared = self._begun.left(here, algorithm)
        before = None if self.agent is None else spent(self.agent, self._linked)
        self._control.regroup(here.tally)
        self.agent = startup.build_agent(prepared, self._task, self._site, here, self._control)
        if self._tracer is not None:
            self.agent.clock.listener = self._tracer.notes
        if before is not None:
            take_up(self.agent, before, here.agents)
        self._linked = here.agents
        return prepared.connected(self.agent.gossip.network)

    def _resumed(self, prepared: Prepared) -> Position | None:
        """Return where the run goes on, None where it begins."""
        agent, resumption = self.agent, prepared.resumption
        assert agent is not None
        if agent.tally.is_root:
            assert self._facts is not None
            introduce(prepared, self._site, self._task, self._facts, self.reporter)
            self.recorder = self._recorder(prepared)
        if resumption is None:
            return None
        moment, said = load(agent.tally, resumption.candidates, self._site.device)
        self.reporter.note(*said)
        at = moment.at
        if resumption.relinked:
            at = at._replace(state=agent.algorithm.anew(at.w, at.state))
        take_up(agent, moment.spent, self._agents)
        sentence = f"resumed after {at.done} iterations"
        self.reporter.say(sentence)

        def reopen() -> str | None:
            assert self.recorder is not None
            if resumption.run_file is not None:
                self.recorder.resume(at.done, sentence)
            return resumption.run_file

        self._path = on_root(agent.tally, reopen)
        return at

    def _gone_on(self, prepared: Prepared, here: Survivors) -> Position:
        """Return where those who are here go on: each at its own point, all in one iteration.

        Raises:
            AgreedError: there is no run file yet to go on with, or it cannot be written.
        """
        agent, tally = self.agent, here.tally
        assert agent is not None
        lost = sorted(set(self._agents) - set(here.agents))
        what = were_lost(lost)
        told = tally.everyone((self._path, self._at is not None))
        known = [path for path, _ in told if path is not None]
        if not known or not all(stands for _, stands in told):
            self.reporter = Reporter(tally.is_root, self._begun.config.run.iterations)
            raise AgreedError(f"{what} before the first evaluation: run again.")
        assert self._at is not None
        self._path = known[0]
        done = -tally.smallest_soon(-self._at.done)()
        state = agent.algorithm.anew(self._at.w, self._at.state)
        sentence = (
            f"{what} after {done} iterations: {len(here.agents)} go on over weights with rho "
            f"{prepared.weights.rho_text}"
        )

        def regroup() -> None:
            file = None
            if self.recorder is None:  # whoever wrote it was lost
                file = Path(known[0])
                self.reporter = Reporter(True, prepared.config.run.iterations)
                self.recorder = self._recorder(prepared)
            self.reporter.note(sentence, *prepared.notes)
            event = Event(done, "agents lost", sentence, {"lost": lost})
            self.recorder.regroup(event, here.agents, prepared.weights, file)

        on_root(tally, regroup)
        self._agents = here.agents
        return Position(done, self._at.w, state)

    def _recorder(self, prepared: Prepared) -> Recorder:
        assert self._facts is not None
        return Recorder(prepared, self._facts, world.library_version(), self.reporter)

    def _evaluation(self, here: Survivors, record: Recording) -> Evaluation:
        assert self.agent is not None
        config = self._begun.config
        private = getattr(self._task, "private", None) if config.algorithm["private"] else None
        hosts = tuple(self._hosts[number] for number in here.agents)
        evaluation = Evaluation(self.agent, hosts, config.run.stationarity, record, private)
        whole = len(here.agents) == self._begun.about.agents
        return replace(evaluation, whole=whole)

    def _saver(self, prepared: Prepared, tally: Tally, last: int | None) -> Saver | None:
        """Return what keeps the checkpoints, if any are asked for."""
        if self._folder is None:
            return None
        output = prepared.config.output
        elsewhere = self._at is None and output.checkpoint != prepared.resumed_from
        folder, everyone = self._folder, tally.gather(self._site.threads)

        def about() -> Manifest:
            assert self.recorder is not None
            assert everyone is not None
            self.recorder.sync()  # a checkpoint must not outlive rows that came before it
            run_file = str(Path(self._path).resolve()) if self._path else ""
            return replace(prepared.about, threads=everyone, run_file=run_file)

        on_root(tally, lambda: folder.claim(resumed=not elsewhere, overwrite=output.overwrite))
        saver = Saver(tally, folder, about, output.checkpoint_every, self.reporter.note)
        saver.last = None if elsewhere else last
        return saver

    def _stand(self, at: Position) -> None:
        self._at = at

    def _note(self, path: str) -> None:
        self._path = path

    def _keep(self, tally: Tally, end: End) -> None:
        """Write what belongs to the end of a run."""
        config = self._begun.config
        if config.run.save_final:
            private = getattr(self._task, "private", None) if config.algorithm["private"] else None
            whole = {} if private is None else {"x": assembled(tally, end.w["x"], private)}
            keep_final(tally, self.recorder, end.w | whole)
        if self._tracer is not None:
            self.reporter.note(*self._tracer.finish())


def _tracer(prepared: Prepared, everyone: Survivors, site: startup.Site) -> Tracer | None:
    output = prepared.config.output
    if output.trace is None:
        return None
    where = (Path(output.trace), output.overwrite, site.local.hosts, site.local.names)
    aligned = partial(align, everyone.comm, site.local.hosts)
    return Tracer(everyone.tally, aligned, partial(TraceFile, *where))
