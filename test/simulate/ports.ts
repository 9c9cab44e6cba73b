import { LedgerError } from '../../src/engine/base/errors.ts'
import type { Every } from '../../src/engine/base/every.ts'
import type { Deadline, HttpTransport, RpcTransport } from '../../src/engine/base/runtime.ts'
import type { SvmAccount } from '../../src/engine/base/svm-signature.ts'
import { buffer } from 'node:stream/consumers'
import type { Ledger } from '../../src/engine/ledger/ledger.ts'
import type { SimulatedChain } from './chain.ts'
import type { SimulatedSvmChain } from './svm-chain.ts'
import type { SimulatedSvmNode } from './svm-node.ts'
import type { Cancel, VirtualClock } from './clock.ts'
import type { FacilitatorReply, SimulatedFacilitator } from './facilitator.ts'
import type { FacilitatorTrouble, NodeTrouble, StoreTrouble } from './faults.ts'
import type { Market, Way } from './market.ts'
import type { SimulatedNode } from './node.ts'
import type { Random } from './random.ts'
import type { Trace } from './trace.ts'

/** What all processes share, and what goes wrong in it now. */
export interface World {
  readonly seed: number
  readonly clock: VirtualClock
  readonly chain: SimulatedChain
  readonly node: SimulatedNode
  readonly svmChain: SimulatedSvmChain
  readonly svmNode: SimulatedSvmNode
  /** By URL, in order of preference; none: own accounts settle. */
  readonly facilitators: ReadonlyMap<string, SimulatedFacilitator>
  /** The store, without time and faults. */
  readonly ledger: Ledger
  readonly trace: Trace
  /** Draws delays and which calls a trouble hits. */
  readonly weather: Random
  readonly nodeTroubles: Set<NodeTrouble>
  readonly storeTroubles: Set<StoreTrouble>
  readonly payTo: string
  readonly svmPayTo: string
  readonly svmFeePayer: SvmAccount
  /** The ways to pay that are offered. */
  readonly ways: readonly Way[]
  /** What processes get that start now. */
  readonly terms: () => Terms
  /** Numbers the calls of a process over all its lives. */
  readonly nextCall: (process: number) => number
  /** Whether a power cut has prevented a change that was under way since a time. */
  readonly isLost: (from: number) => boolean
  readonly violate: (what: string) => void
  /** Called for each call of a port, and again with its result: whether the process dies there. */
  readonly dies: (process: number, call: number, when: 'before' | 'after') => boolean
}

/** What an operator decides. */
export interface Terms {
  readonly market: Market
  /** The first one sends new transactions. */
  readonly signerKeys: readonly `0x${string}`[]
  /** The first one is named by new channels. */
  readonly channelKeys: readonly `0x${string}`[]
}

/** Everything a process has of the world. */
export interface Ports {
  readonly ledger: Ledger
  readonly caller: RpcTransport
  readonly http: HttpTransport
  readonly now: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly every: Every
  readonly deadline: Deadline
  isAlive(): boolean
  kill(): void
  /** The process gets nothing for so many milliseconds, and all of it afterwards. */
  pause(ms: number): void
  /** Runs something in the process: now, when it runs again, or never. */
  enter(work: () => void): void
  /** Called when the process dies. */
  onDeath(work: () => void): void
}

/** Where the nodes of the two chains are. */
export const EVM_NODE = 'https://node.example'
export const SVM_NODE = 'https://svm-node.example'

const NEVER = new Promise<never>(() => undefined)
/** How long Redis is waited for. */
const STORE_TIMEOUT_MS = 5_000

export function openPorts(world: World, index: number): Ports {
  const { clock, weather, nodeTroubles, storeTroubles } = world
  let alive = true
  let pausedUntil = 0
  let waiting: (() => void)[] = []
  const mourners: (() => void)[] = []
  const cancels = new WeakMap<AbortSignal, Cancel>()

  const kill = (): void => {
    if (!alive) return
    alive = false
    waiting = []
    for (const each of mourners) each()
  }
  const enter = (work: () => void): void => {
    if (!alive) return
    if (clock.now < pausedUntil) waiting.push(work)
    else work()
  }
  const resume = (): void => {
    if (clock.now < pausedUntil) return
    const all = waiting
    waiting = []
    // One after the other, as an event loop takes them.
    for (const work of all) clock.after(0, () => enter(work))
  }
  /** Whether the process is still there to make a call. */
  const begins = (call: number): boolean => {
    if (!alive) return false
    if (!world.dies(index, call, 'before')) return true
    kill()
    return false
  }
  const ends = (call: number, work: () => void): void => {
    enter(() => {
      if (world.dies(index, call, 'after')) kill()
      else work()
    })
  }
  const sleep = (ms: number): Promise<void> => {
    const call = world.nextCall(index)
    if (!begins(call)) return NEVER
    return new Promise((resolve) => clock.after(ms, () => ends(call, resolve)))
  }
  const ask = <T>(kind: 'read' | 'change', work: () => Promise<T>): Promise<T> => {
    const call = world.nextCall(index)
    if (!begins(call)) return NEVER
    const isHit = storeTroubles.size > 0 && weather.chance(0.4)
    const hit = (trouble: StoreTrouble): boolean => isHit && storeTroubles.has(trouble)
    const delay = hit('slow') ? weather.between(50, 3_000) : weather.between(0, 3)
    return new Promise<T>((resolve, reject) => {
      const fail = (ms: number): void => {
        clock.after(ms, () => ends(call, () => reject(new LedgerError('the ledger has not answered'))))
      }
      if (hit('loses changes')) {
        fail(STORE_TIMEOUT_MS)
        return
      }
      const late = kind === 'change' && hit('changes late')
      if (late) fail(STORE_TIMEOUT_MS)
      const from = clock.now
      clock.after(late ? STORE_TIMEOUT_MS + weather.between(1, 500) : delay, () => {
        if (kind === 'change' && world.isLost(from)) return
        const done = work()
        if (late) void done.catch(() => undefined)
        else if (hit('loses acknowledgements')) fail(STORE_TIMEOUT_MS)
        else
          void done.then(
            (value) => clock.after(weather.between(0, 2), () => ends(call, () => resolve(value))),
            (fault: unknown) => clock.after(1, () => ends(call, () => reject(fault))),
          )
      })
    })
  }
  /** Sends a request over a network and waits for the reply; resolves to it when it arrives. */
  const exchange = <T>(call: number, { signal, hit, there, back, work }: Exchange<T>): Promise<T> =>
    new Promise((resolve, reject) => {
      const fails = (ms: number, fault: Error): unknown =>
        clock.after(ms, () => ends(call, () => reject(fault)))
      signal.addEventListener('abort', () => ends(call, () => reject(BROKEN)))
      if (hit('is away')) return void fails(there, NOT_REACHED)
      if (hit('loses requests')) return void (weather.chance(0.5) && fails(there, BROKEN))
      clock.after(there, () => {
        void work().then((reply) => {
          if (hit('loses replies')) return void (weather.chance(0.5) && fails(back('lost'), BROKEN))
          clock.after(back('arrives'), () =>
            ends(call, () => {
              cancels.get(signal)?.()
              resolve(reply)
            }),
          )
        })
      })
    })
  const caller: RpcTransport = async (url, { body, signal }) => {
    const node = url === SVM_NODE ? world.svmNode : world.node
    const call = world.nextCall(index)
    if (!begins(call)) return NEVER
    const isHit = nodeTroubles.size > 0 && weather.chance(0.5)
    const hit = (trouble: NetworkTrouble | NodeTrouble): boolean =>
      isHit && trouble !== 'is away' && nodeTroubles.has(trouble)
    const delay = (): number => (hit('slow') ? weather.between(200, 6_000) : weather.between(2, 30))
    const [there, back] = [delay(), delay()]
    const answer = await exchange(call, {
      signal,
      hit,
      there,
      back: (fate) => (fate === 'arrives' && hit('answers late') ? 15_000 : back),
      work: async () => (hit('overloaded') ? OVERLOADED : node.answer(body)),
    })
    return { json: async () => answer }
  }
  /** Reaches facilitators: what is done there goes on when the process that has asked is gone. */
  const http: HttpTransport = async (address, { body = '', signal }) => {
    const { origin, pathname } = new URL(address)
    const facilitator = world.facilitators.get(origin)
    if (facilitator === undefined) throw new Error(`${origin} does not exist`)
    const call = world.nextCall(index)
    if (!begins(call)) return NEVER
    const isHit = facilitator.troubles.size > 0 && weather.chance(0.5)
    const hit = (trouble: FacilitatorTrouble): boolean => isHit && facilitator.troubles.has(trouble)
    const delay = (): number => (hit('slow') ? weather.between(200, 12_000) : weather.between(5, 60))
    const work = (): Promise<FacilitatorReply> => facilitator.answer(pathname, body)
    const reply = await exchange(call, { signal, hit, there: delay(), back: delay, work })
    return { status: reply.status, header: () => undefined, body: bytesOf(reply.body) }
  }
  return {
    ledger: overPort(world.ledger, ask),
    caller,
    http,
    now: () => clock.now,
    sleep,
    every: (ms, work) => {
      let stopped = false
      const again = (): void => {
        clock.after(ms, () => {
          if (stopped || !alive) return
          enter(() => {
            if (!stopped) work()
          })
          again()
        })
      }
      again()
      return () => (stopped = true)
    },
    deadline: (ms) => {
      const controller = new AbortController()
      cancels.set(
        controller.signal,
        clock.after(ms, () => controller.abort()),
      )
      return controller.signal
    },
    isAlive: () => alive,
    kill,
    pause: (ms) => {
      pausedUntil = Math.max(pausedUntil, clock.now + ms)
      clock.after(ms, resume)
    },
    enter,
    onDeath: (work) => mourners.push(work),
  }
}

/** What may go wrong on the way to nodes and facilitators. */
type NetworkTrouble = 'is away' | 'loses requests' | 'loses replies'

interface Exchange<T> {
  readonly signal: AbortSignal
  readonly hit: (trouble: NetworkTrouble) => boolean
  /** Milliseconds until the request is there. */
  readonly there: number
  /** Milliseconds until the reply is back, or the connection is seen to be broken. */
  readonly back: (fate: 'arrives' | 'lost') => number
  readonly work: () => Promise<T>
}

const BROKEN = new Error('the connection is broken')
const NOT_REACHED = Object.assign(new Error('nobody listens there'), { syscall: 'connect' })

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

const OVERLOADED = { jsonrpc: '2.0', id: null, error: { code: -32005, message: 'too many requests' } }

type Ask = <T>(kind: 'read' | 'change', work: () => Promise<T>) => Promise<T>

/** A ledger as a process reaches it. */
function overPort(ledger: Ledger, ask: Ask): Ledger {
  const { answers, states } = ledger
  return {
    ...ledger,
    check: () => ask('read', () => ledger.check()),
    get: (key) => ask('read', () => ledger.get(key)),
    find: (id) => ask('read', () => ledger.find(id)),
    insert: (record) => ask('change', () => ledger.insert(record)),
    states: { get: (name) => ask('read', () => states.get(name)), list: (prefix) => states.list(prefix) },
    commit: (all, states) => ask('change', () => ledger.commit(all, states)),
    replace: (previous, next) => ask('change', () => ledger.replace(previous, next)),
    remove: (record) => ask('change', () => ledger.remove(record)),
    search: (term, limit, before) => ask('read', () => ledger.search(term, limit, before)),
    totals: {
      read: (kind, from, to) => ledger.totals.read(kind, from, to),
      rebuild: () => ask('change', () => ledger.totals.rebuild()),
    },
    counts: {
      add: (date, counts) => ask('change', () => ledger.counts.add(date, counts)),
      read: (from, to) => ask('read', () => ledger.counts.read(from, to)),
    },
    due: (queue, now, limit) => ask('read', () => ledger.due(queue, now, limit)),
    undelivered: (buyer, since, limit) => ask('read', () => ledger.undelivered(buyer, since, limit)),
    addExpiring: (name, fact, until) => ask('change', () => ledger.addExpiring(name, fact, until)),
    addWithinLimit: (name, amount, limit, now) =>
      ask('change', () => ledger.addWithinLimit(name, amount, limit, now)),
    listExpiring: (name, now) => ask('read', () => ledger.listExpiring(name, now)),
    lease: (name, owner, now, until) => ask('change', () => ledger.lease(name, owner, now, until)),
    release: (lease, left) => ask('change', () => ledger.release(lease, left)),
    answers: {
      // A stream is read before it is stored, as a store does that writes piece by piece.
      write: async (answer, body) => {
        const bytes = body instanceof Uint8Array ? body : await buffer(body)
        return ask('change', () => answers.write(answer, bytes))
      },
      read: (id, reference) => ask('read', () => answers.read(id, reference)),
      delete: (id, reference) => ask('change', () => answers.delete(id, reference)),
      sweep: (now, isKept) => ask('change', () => answers.sweep(now, isKept)),
    },
  }
}
