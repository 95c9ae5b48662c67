"""One agent's run, from one loss of other agents to the next; most runs have no such loss."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sundsbo_mpi.agent import Position
from sundsbo_mpi.checkpoint import Folder, Manifest, Saver
from sundsbo_mpi.checkpoint.resuming import load
from sundsbo_mpi.comm import world
from sundsbo_mpi.comm.agreement import on_root
from sundsbo_mpi.diagnosis.causes import Diagnosis
from sundsbo_mpi.diagnosis.health import NotFiniteError
from sundsbo_mpi.errors import AgreedError, DivergedError
from sundsbo_mpi.measuring.evaluation import Evaluation
from sundsbo_mpi.runfile import Event
from sundsbo_mpi.running import startup
from sundsbo_mpi.running.introduction import facts_of_agents, introduce, were_lost
from sundsbo_mpi.running.observing import Recording, RunObserver, keep_final, spent, take_up
from sundsbo_mpi.running.progress import Reporter
from sundsbo_mpi.running.recording import Recorder

if TYPE_CHECKING:
    from sundsbo_mpi.agent import Agent, End
    from sundsbo_mpi.comm.survivors import Survivors
    from sundsbo_mpi.comm.tally import Tally
    from sundsbo_mpi.ranks.control import Control
    from sundsbo_mpi.ranks.watchdog import Watchdog
    from sundsbo_mpi.running.preparation import Prepared
    from sundsbo_mpi.tasks.base import Task


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
        tally, output = everyone.tally, prepared.config.output
        # Where agents may be lost any rank may have to go on with the run file.
        self._facts = facts_of_agents(tally, site, task, shared=everyone.watched)
        self._hosts = dict(zip(everyone.agents, site.local.nodes, strict=True))
        self._tracer = startup.build_tracer(output, everyone, site)
        self._folder = Folder(Path(output.checkpoint)) if output.checkpoint else None
        self.here = everyone
        """Those who are left."""
        self._noted = everyone.agents  # as the run file knows
        self._at: Position | None = None
        self._path: str | None = None  # of the run file, once it is there
        self._agent: Agent | None = None
        self._observer: RunObserver | None = None
        self._recorder: Recorder | None = None  # on the rank alone that writes the run file
        self.reporter = Reporter(tally.is_root, prepared.config.run.iterations)
        """Of this rank; silent on all but one."""

    @property
    def run_file(self) -> Path | None:
        """The run file, on the rank that writes it, once it is there."""
        return self._recorder.path if self._recorder else None

    def live(self, here: Survivors, watchdog: Watchdog) -> End:
        """Do what is left to do with those who are here."""
        self.here = here
        with watchdog.paused():
            prepared, agent = self._connect(here)
            saver = self._saver(prepared, here.tally)  # nothing is changed if it is refused
            whole = list(here.agents) == self._begun.about.numbers
            begin = (self._taken_up if whole else self._gone_on)(prepared, agent)
            observer = self._look_on(prepared, agent, saver, watchdog)
        with self.reporter:
            if begin is not None and agent.evaluates(begin.done):
                last = agent.tally.tell(self._recorder.last if self._recorder else None)
                if last < begin.done:  # whoever measured here was lost meanwhile
                    observer.evaluate(begin)
            end = self._iterate(observer, begin)
        with watchdog.paused():
            self._keep(observer, end)
        return end

    def close(self, status: str, *, together: bool) -> None:
        """Say how the run ended, and let go of files and links; of these where all do so."""
        if self._recorder is not None:
            self._recorder.close(status)
        if self._folder is not None:
            self._folder.release()
        if together and self._agent is not None:
            self._agent.close()

    def _connect(self, here: Survivors) -> tuple[Prepared, Agent]:
        """Make the agent, linked with those who are here; it counts on from what it had spent."""
        prepared, seen = self._begun.left(here), self._observer
        self._control.regroup(here.tally)
        agent = startup.build_agent(prepared, self._task, self._site, here, self._control)
        if self._tracer is not None:
            agent.clock.listener = self._tracer.notes
        if seen is not None:
            take_up(agent, spent(seen.agent, seen.numbers, seen.evaluation.sent()), here.agents)
        self._agent = agent
        return prepared.connected(agent.gossip.network), agent

    def _saver(self, prepared: Prepared, tally: Tally) -> Saver | None:
        """Return what keeps the checkpoints, if any are asked for."""
        output, folder = prepared.config.output, self._folder
        if folder is None:
            return None
        before = prepared.resumed_from
        goes_on = self._at is not None or (before is not None and folder.is_at(before))
        threads = tally.gather(self._site.threads)

        def manifest() -> Manifest:
            assert self._recorder is not None
            assert threads is not None
            self._recorder.sync()  # a checkpoint must not outlive rows that came before it
            run_file = str(Path(self._path).resolve()) if self._path else ""
            return Manifest(0, prepared.about, run_file, threads, [])

        on_root(tally, lambda: folder.claim(resumed=goes_on, overwrite=output.overwrite))
        saver = Saver(tally, folder, manifest, output.checkpoint_every, self.reporter.note)
        saver.vital = not goes_on
        return saver

    def _taken_up(self, prepared: Prepared, agent: Agent) -> Position | None:
        """Return where a resumed run goes on, None where a run begins."""
        resumption = prepared.resumption
        if agent.tally.is_root:
            assert self._facts is not None
            introduce(prepared, self._facts, self.reporter)
            self._recorder = self._new_recorder(prepared)
        if resumption is None:
            return None
        moment, said = load(agent, resumption.candidates, self._site.device)
        self.reporter.note(*said)
        at = moment.at
        if resumption.relinked:
            at = at._replace(state=agent.algorithm.anew(at.w, at.state))
        take_up(agent, moment.spent, self.here.agents)
        sentence = f"resumed after {at.done} iterations"
        self.reporter.say(sentence)

        def reopen() -> str | None:
            assert self._recorder is not None
            if resumption.run_file is not None:
                self._recorder.resume(at.done, sentence)
            return resumption.run_file

        self._path = on_root(agent.tally, reopen)
        return at

    def _gone_on(self, prepared: Prepared, agent: Agent) -> Position:
        """Return where those who are left go on: each at its own point, all in one iteration.

        Raises:
            AgreedError: there is no run file yet to go on with, or it cannot be written.
        """
        tally, agents = agent.tally, self.here.agents
        lost = sorted({*self._noted} - {*agents})
        told = tally.everyone((self._path, self._at is not None))
        known = [path for path, _ in told if path is not None]
        if not known or not all(stands for _, stands in told):
            self.reporter = Reporter(tally.is_root, prepared.config.run.iterations)
            raise AgreedError(f"{were_lost(lost)} before the first evaluation: run again.")
        assert self._at is not None
        self._path = known[0]
        done = -tally.smallest(-self._at.done)
        sentence = (
            f"{were_lost(lost)} after {done} iterations: {len(agents)} go on over weights with rho "
            f"{prepared.weights.rho_text}"
        )

        def regroup() -> None:
            file = None
            if self._recorder is None:  # whoever wrote it was lost
                file = Path(known[0])
                self.reporter = Reporter(True, prepared.config.run.iterations)
                self._recorder = self._new_recorder(prepared)
            self.reporter.note(sentence, *prepared.notes)
            event = Event(done, "agents lost", sentence, {"lost": lost})
            self._recorder.regroup(event, agents, prepared.weights, file)

        on_root(tally, regroup)
        self._noted = agents
        return Position(done, self._at.w, agent.algorithm.anew(self._at.w, self._at.state))

    def _new_recorder(self, prepared: Prepared) -> Recorder:
        assert self._facts is not None
        return Recorder(prepared, self._facts, world.library_version(), self.reporter)

    def _look_on(
        self, prepared: Prepared, agent: Agent, saver: Saver | None, watchdog: Watchdog
    ) -> RunObserver:
        """Return who measures, records and keeps what the agent does."""
        config, about = prepared.config, prepared.about
        diagnosis = Diagnosis(config, agent.algorithm, prepared.weights, self._task, about.agents)
        record = Recording(
            agent, self._recorder, self.reporter, diagnosis, self._tracer, self._hear
        )
        hosts = tuple(self._hosts[number] for number in about.numbers)
        private = getattr(self._task, "private", None) if config.algorithm["private"] else None
        evaluation = Evaluation(
            agent, hosts, config.run.stationarity, record, private, whole=about.whole
        )
        self._observer = RunObserver(
            agent, about.numbers, evaluation, saver, record, watchdog, self._stand
        )
        return self._observer

    def _stand(self, at: Position) -> None:
        self._at = at

    def _hear(self, path: str) -> None:
        self._path = path

    def _iterate(self, observer: RunObserver, begin: Position | None) -> End:
        """Do the iterations."""
        try:
            return observer.agent.run(observer, begin)
        except DivergedError as error:
            if self._tracer is not None:
                with suppress(AgreedError):  # to have diverged is the graver trouble
                    self.reporter.note(*self._tracer.finish())
            if isinstance(error, NotFiniteError):
                raise observer.explained(error) from None
            raise

    def _keep(self, observer: RunObserver, end: End) -> None:
        """Write what belongs to the end of a run."""
        if self._begun.config.run.save_final:
            keep_final(observer.agent.tally, self._recorder, end.w, observer.evaluation.private)
        if self._tracer is not None:
            self.reporter.note(*self._tracer.finish())
