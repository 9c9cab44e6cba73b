import { BLOCK_MS } from './chain.ts'
import { randomOf, type Random } from './random.ts'

/** How a store keeps what is written: `lmdb` on one machine, `redis` on another, which may fail over. */
export type StoreKind = 'lmdb' | 'redis'

/** What nodes do wrong for a while, and how often. */
export const NODE_TROUBLES = [
  'slow',
  'loses requests',
  'loses replies',
  'answers late',
  'overloaded',
  'refuses batches',
  'lags',
  'mixes blocks',
  'forgets its pool',
] as const
export type NodeTrouble = (typeof NODE_TROUBLES)[number]

export const STORE_TROUBLES = ['slow', 'loses changes', 'loses acknowledgements', 'changes late'] as const
export type StoreTrouble = (typeof STORE_TROUBLES)[number]

/** What facilitators do wrong for a while, and what happens on the way to them. */
const FACILITATOR_TROUBLES = [
  'slow',
  'is away',
  'loses requests',
  'loses replies',
  'limits rates',
  'repeats requests',
  'says yes too early',
  'breaks afterwards',
] as const
export type FacilitatorTrouble = (typeof FACILITATOR_TROUBLES)[number]

/** One thing that goes wrong. Times are milliseconds from the start of the run. */
export type Fault =
  /** `call`: the number of a call of a port by this process, to store, chain or clock. */
  | {
      readonly kind: 'kill'
      readonly process: number
      readonly call: number
      readonly when: 'before' | 'after'
      readonly down: number
    }
  | { readonly kind: 'pause'; readonly process: number; readonly at: number; readonly ms: number }
  | { readonly kind: 'node'; readonly at: number; readonly ms: number; readonly what: NodeTrouble }
  | { readonly kind: 'store'; readonly at: number; readonly ms: number; readonly what: StoreTrouble }
  | {
      readonly kind: 'facilitator'
      readonly which: number
      readonly at: number
      readonly ms: number
      readonly what: FacilitatorTrouble
    }
  /** Redis goes on with a replica that has not had what was acknowledged in the last `ms` milliseconds. */
  | { readonly kind: 'failover'; readonly at: number; readonly ms: number }
  /** All processes end at once; of the changes under way, LMDB has made some, each as a whole. */
  | { readonly kind: 'power cut'; readonly at: number; readonly down: number }
  | {
      readonly kind: 'reorganisation'
      readonly at: number
      readonly depth: number
      readonly pool: 'kept' | 'lost'
    }
  /** An operator restarts one process after the other, with another signer before the present ones, or another price. */
  | {
      readonly kind: 'rollout'
      readonly at: number
      readonly down: number
      readonly what: 'new key' | 'new price' | 'new channel key'
    }
  | { readonly kind: 'fees'; readonly at: number; readonly ms: number; readonly gwei: number }

/** Faults of a run of so many milliseconds. */
export function drawFaults(seed: number, store: StoreKind, processes: number, ms: number): readonly Fault[] {
  const random = randomOf(seed, 'faults')
  const at = (): number => random.between(500, ms)
  const draw: Record<(typeof KINDS)[number], () => Fault> = {
    kill: () => ({
      kind: 'kill',
      process: random.between(0, processes),
      call: random.between(5, 1_500),
      when: random.oneOf(['before', 'after']),
      down: random.between(200, 20_000),
    }),
    pause: () => ({
      kind: 'pause',
      process: random.between(0, processes),
      at: at(),
      ms: random.between(100, 40_000),
    }),
    node: () => ({
      kind: 'node',
      at: at(),
      ms: random.between(500, 20_000),
      what: random.oneOf(NODE_TROUBLES),
    }),
    store: () => ({
      kind: 'store',
      at: at(),
      ms: random.between(200, 8_000),
      what: drawStoreTrouble(random, store),
    }),
    'power cut': () => ({ kind: 'power cut', at: at(), down: random.between(500, 20_000) }),
    reorganisation: () => ({
      kind: 'reorganisation',
      at: at(),
      depth: random.between(1, 4),
      pool: random.oneOf(['kept', 'lost']),
    }),
    fees: () => ({
      kind: 'fees',
      at: at(),
      ms: random.between(2, 15) * BLOCK_MS,
      gwei: random.between(1, 8),
    }),
  }
  // Some runs have many faults of one kind, most have a few of all.
  const kinds = KINDS.filter((kind) => kind !== 'power cut' || store === 'lmdb')
  const many = random.between(0, 14)
  const faults = Array.from({ length: many }, () => draw[random.oneOf(kinds)]())
  return [...faults, ...drawRollouts(seed, ms)]
}

/** Failovers of Redis that take back what was acknowledged. */
export function drawFailovers(seed: number, ms: number): readonly Fault[] {
  const random = randomOf(seed, 'failovers')
  return Array.from({ length: random.between(1, 3) }, () => ({
    kind: 'failover' as const,
    at: random.between(2_000, ms),
    ms: random.between(20, 1_000),
  }))
}

/** What goes wrong at the facilitators, in a run of so many milliseconds. */
export function drawFacilitatorFaults(seed: number, ms: number): readonly Fault[] {
  const random = randomOf(seed, 'facilitators')
  return Array.from({ length: random.between(0, 10) }, () => ({
    kind: 'facilitator' as const,
    which: random.between(0, 2),
    at: random.between(500, ms),
    ms: random.between(500, 20_000),
    what: random.oneOf(FACILITATOR_TROUBLES),
  }))
}

/** From a stream of its own: runs without one stay as they were. */
function drawRollouts(seed: number, ms: number): readonly Fault[] {
  const random = randomOf(seed, 'operators')
  const rollouts: Fault[] = []
  for (const what of ['new key', 'new price'] as const)
    if (random.chance(0.2))
      rollouts.push({ kind: 'rollout', at: random.between(500, ms), down: random.between(200, 10_000), what })
  return rollouts
}

const KINDS = [
  'kill',
  'kill',
  'kill',
  'pause',
  'node',
  'node',
  'store',
  'power cut',
  'reorganisation',
  'fees',
] as const

function drawStoreTrouble(random: Random, store: StoreKind): StoreTrouble {
  // What a process has given to LMDB is stored, or the process is told that it is not.
  return store === 'redis' ? random.oneOf(STORE_TROUBLES) : random.oneOf(['slow', 'loses changes'])
}

/** In words, for the history of a failure. */
export function describeFault(fault: Fault): string {
  const { kind, ...rest } = fault
  return `${kind} ${JSON.stringify(rest)}`
}
