import { spawnSync } from 'node:child_process'
import { constants } from 'node:os'

/** Kills what this process has started when it ends: by itself, or by a signal. SIGALRM is that of tap at a time limit. */
export function endDescendantsWithThis() {
  // A signal would skip the event `exit`.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGALRM'])
    process.once(signal, () => process.exit(128 + constants.signals[signal]))
  process.once('exit', () => {
    for (const pid of descendants(process.pid)) end(pid)
  })
}

/** The processes that a process has started, and those that these have started. */
function descendants(ancestor) {
  const { stdout } = spawnSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' })
  const processes = (stdout ?? '')
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .map(([pid, parent]) => ({ pid, parent }))
  const of = (pid) =>
    processes.filter(({ parent }) => parent === pid).flatMap((child) => [child.pid, ...of(child.pid)])
  return of(ancestor)
}

function end(pid) {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended by itself, as `ps` has.
  }
}
