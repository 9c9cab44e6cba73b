import { endNow, type Signals, type StopSignal } from './signals.ts'
import { isA, type News, type Order, type Report, type Served, type Worker } from './supervisor-messages.ts'

/** The supervisor, as the process sees it that serves. */
export interface Supervisor extends Signals {
  readonly worker: Worker
  /** What is served already, by the process that this one replaces or by another one beside it. */
  readonly before: Served | undefined
  /** Resolves when another process serves in place of this one. */
  readonly replaced: Promise<void>
  report(report: Report): void
  /** What each process that serves has counted; `count` says what this one has. */
  counts(): Promise<readonly object[]>
  onCount(count: () => Promise<object>): void
  /** Calls `hear` with what other processes tell the first one. */
  onNews(hear: (news: News) => void): void
}

/** Must be called in a process that `supervise` has started. */
export async function joinSupervisor(): Promise<Supervisor> {
  // A terminal sends them to all processes: the supervisor tells this one what to do.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined)
  // The supervisor has been killed. Node.js calls `process.exit` next.
  process.prependListener('disconnect', endNow)
  let reload = (): void => undefined
  let count = async (): Promise<object> => ({})
  let hear = (_news: News): void => undefined
  const asking: ((counts: readonly object[]) => void)[] = []
  return new Promise((resolve) => {
    let stop = (_signal: StopSignal): void => undefined
    const stopped = new Promise<StopSignal>((obey) => (stop = obey))
    let leave = (): void => undefined
    const replaced = new Promise<void>((obey) => (leave = obey))
    const join = ({ worker, before }: Extract<Order, { readonly kind: 'begin' }>): void =>
      resolve({
        worker,
        before,
        stopped,
        replaced,
        onReload: (wanted) => {
          reload = wanted
        },
        report,
        counts: () =>
          new Promise((answer) => {
            asking.push(answer)
            report({ kind: 'ask' })
          }),
        onCount: (wanted) => {
          count = wanted
        },
        onNews: (wanted) => {
          hear = wanted
        },
      })
    process.on('message', (order) => {
      if (!isA<Order>(order)) return
      switch (order.kind) {
        case 'begin':
          return join(order)
        case 'reload':
          return reload()
        case 'stop':
          return stop(order.signal)
        case 'leave':
          return leave()
        case 'count':
          return void count().then((counted) =>
            report({ kind: 'count', question: order.question, count: counted }),
          )
        case 'counted':
          return asking.shift()?.(order.counts)
        case 'news':
          return hear(order.news)
      }
    })
    report({ kind: 'joined' })
  })
}

function report(report: Report): void {
  process.send?.(report)
}
