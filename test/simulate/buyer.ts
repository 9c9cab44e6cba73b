import { Failure } from '../../src/engine/base/errors.ts'
import type { PurchaseReply } from '../../src/engine/purchase/purchase.ts'
import type { Fulfillment } from '../../src/engine/purchase/request.ts'
import { paymentKey } from '../../src/engine/x402/exact-evm/payment-key.ts'
import { isJsonObject } from '../../src/engine/base/json.ts'
import { BASE, sign, type RouteName, type SignedPayment, type Wallet } from './market.ts'
import type { Life } from './process.ts'
import type { World } from './ports.ts'
import { randomOf, type Random } from './random.ts'

/** One thing that a buyer wants, and how it goes about it. */
export interface Plan {
  readonly id: number
  readonly buyer: number
  readonly route: RouteName
  readonly args: string
  /** Milliseconds from the start. */
  readonly at: number
  /** Requests with the first payment that are sent at once. */
  readonly copies: number
  /** The first request is given up after so many milliseconds. */
  readonly patience: number | undefined
  /** What is done after a lost answer: the same payment, a new one, or nothing. */
  readonly retry: 'again' | 'anew' | 'stop'
  /** What the payer does between the check and the settlement. */
  readonly trouble: 'none' | 'drain' | 'cancel'
  /** Milliseconds that the work takes. */
  readonly work: number
  /** How often the work fails before it succeeds. */
  readonly failures: number
}

export function drawPlans(seed: number, count: number, buyers: number, ms: number): readonly Plan[] {
  const random = randomOf(seed, 'plans')
  return Array.from({ length: count }, (_, id) => ({
    id,
    buyer: random.between(0, buyers),
    route: random.chance(0.7) ? 'tide' : 'deep',
    // Some want what others want too, or what they have bought already.
    args: random.chance(0.85) ? `only ${id}` : `one of ${random.between(0, 3)}`,
    at: random.between(0, ms),
    copies: random.chance(0.85) ? 1 : random.between(2, 4),
    patience: random.chance(0.9) ? undefined : random.between(5, 4_000),
    retry: random.oneOf(['again', 'again', 'anew', 'anew', 'stop']),
    trouble: random.chance(0.94) ? 'none' : random.oneOf(['drain', 'cancel']),
    work: random.chance(0.8) ? random.between(1, 200) : random.between(200, 9_000),
    failures: random.chance(0.93) ? 0 : random.between(1, 3),
  }))
}

export function describePlan({ id, buyer, ...plan }: Plan): string {
  const { at, route, args, copies, patience = 'all', retry, trouble, work, failures } = plan
  return `purchase ${id} at ${at}: buyer ${buyer}, ${route} (${args}), ${copies} at once, patience ${patience}, then ${retry}, ${trouble}, work ${work} ms, fails ${failures}×`
}

/** What a buyer was told about a payment, or has seen of it. */
export interface Told {
  readonly key: string
  readonly plan: Plan
  /** When the request began and when it ended. */
  readonly from: number
  readonly to: number
  readonly outcome: 'answered' | 'yes' | 'no' | 'unknown' | 'closed' | 'left'
}

/** Ends a request. `about`: the payment that was answered or charged for it. */
type End = (outcome: Told['outcome'], about?: string) => void

/** Where buyers come to. */
export interface Door {
  /** A process that takes requests now. */
  readonly open: (random: Random) => Life | undefined
  readonly tell: (told: Told) => void
  /** How often the work of a plan was begun. */
  readonly runs: Map<number, number>
}

/** Longest wait for an answer. */
const LONGEST_MS = 100_000
const MOST_PAYMENTS = 4
const MOST_REPEATS = 8

/** A buyer gets what it wants, or gives up. */
export async function shop(world: World, door: Door, wallet: Wallet, plan: Plan): Promise<void> {
  const { clock, chain } = world
  const random = randomOf(world.seed, `plan ${plan.id}`)
  await clock.sleep(plan.at)
  for (let payments = 0; payments < MOST_PAYMENTS; payments += 1) {
    const life = door.open(random)
    if (life === undefined) {
      await clock.sleep(random.between(500, 3_000))
      continue
    }
    const signed = sign(chain, life.protocol, life.routes[plan.route], wallet, random, clock.now)
    if (payments === 0 && plan.trouble !== 'none') {
      const outside =
        plan.trouble === 'drain'
          ? ({ kind: 'spend', from: wallet.address, leave: 0n } as const)
          : ({ kind: 'cancel', from: wallet.address, nonce: signed.nonce } as const)
      clock.after(random.between(0, plan.work + 3_000), () => chain.happen(outside))
      if (plan.trouble === 'drain') clock.after(30_000, () => chain.give(wallet.address, 10n ** 9n))
    }
    if ((await pay(world, door, wallet, plan, signed, payments === 0 ? 'first' : 'later', random)) === 'done')
      return
    await clock.sleep(random.between(200, 4_000))
  }
}

/** Sends one payment until its outcome is known. */
async function pay(
  world: World,
  door: Door,
  wallet: Wallet,
  plan: Plan,
  signed: SignedPayment,
  turn: 'first' | 'later',
  random: Random,
): Promise<'done' | 'next'> {
  const { clock } = world
  for (let repeats = 0; repeats < MOST_REPEATS; repeats += 1) {
    const isFirst = turn === 'first' && repeats === 0
    const copies = isFirst ? plan.copies : 1
    const outcomes = await Promise.all(
      Array.from({ length: copies }, async (_, copy) => {
        await clock.sleep(copy === 0 ? 0 : random.between(0, 300))
        return request(world, door, wallet, plan, signed, isFirst ? plan.patience : undefined, random)
      }),
    )
    if (outcomes.includes('answered')) return 'done'
    const isLost = outcomes.some((each) => each === 'closed' || each === 'left' || each === 'unknown')
    if (!isLost && !outcomes.includes('yes')) return 'next'
    if (plan.retry === 'stop') return 'done'
    // Clients that know nothing of the ledger sign anew; what was told to be charged is sent again by all.
    if (plan.retry === 'anew' && !outcomes.includes('yes') && !outcomes.includes('unknown')) return 'next'
    await clock.sleep(random.between(100, 6_000))
  }
  return 'done'
}

/** One request, from its first byte to the last of its answer. */
function request(
  world: World,
  door: Door,
  wallet: Wallet,
  plan: Plan,
  signed: SignedPayment,
  patience: number | undefined,
  random: Random,
): Promise<Told['outcome']> {
  const { clock, trace } = world
  const name = `buyer ${plan.buyer}`
  const key = paymentKey(BASE, { from: wallet.address, nonce: hexOf(signed.nonce) })
  const from = clock.now
  const life = door.open(random)
  const gone = new AbortController()
  return new Promise((resolve) => {
    let open = true
    const end: End = (outcome, about = key) => {
      if (!open) return
      open = false
      trace.note(
        name,
        `purchase ${plan.id}, payment ${signed.nonce.slice(2, 8)}: ${outcome}${about === key ? '' : ` by ${about.slice(-64, -58)}`}`,
      )
      door.tell({ key: about, plan, from, to: clock.now, outcome })
      resolve(outcome)
    }
    if (life === undefined) {
      clock.after(10, () => end('closed'))
      return
    }
    trace.note(name, `purchase ${plan.id} sends payment ${signed.nonce.slice(2, 8)}`)
    life.ports.onDeath(() => clock.after(1, () => end('closed')))
    const leave = (): void => {
      if (!open) return
      clock.after(random.between(1, 20), () => life.ports.enter(() => gone.abort()))
      end('left')
    }
    clock.after(patience ?? LONGEST_MS, leave)
    const route = life.routes[plan.route]
    clock.after(random.between(1, 30), () =>
      life.ports.enter(() => {
        const fulfillment = (served: Life): Fulfillment => fulfillmentOf(door, served, plan)
        void life
          .serve({ header: signed.header, route, args: plan.args, fulfillment, gone: gone.signal })
          .then(
            (reply) => answer(world, life, plan, reply, gone.signal, end, () => open, random),
            (fault: unknown) => {
              world.violate(
                `a purchase rejects: ${fault instanceof Error ? (fault.stack ?? '') : String(fault)}`,
              )
              end('unknown')
            },
          )
      }),
    )
  })
}

/** Sends a reply to its buyer. */
function answer(
  world: World,
  life: Life,
  plan: Plan,
  reply: PurchaseReply,
  gone: AbortSignal,
  end: End,
  isOpen: () => boolean,
  random: Random,
): void {
  const { clock } = world
  const later = (work: () => void): unknown => clock.after(random.between(1, 30), work)
  switch (reply.kind) {
    case 'answered': {
      const { entry, answer: stored } = reply
      if (!isAnswerTo(plan, stored)) world.violate(`purchase ${plan.id} got the answer of another one`)
      life.sent(entry, gone)
      later(() => isOpen() && end('answered', entry.key))
      return
    }
    case 'offer':
      later(() => end('no'))
      return
    case 'fault': {
      const { charge, paid } = reply
      later(() => end(charge.charged, paid?.entry.key))
      return
    }
    case 'problem':
      later(() => end(reply.charged))
  }
}

function isAnswerTo(plan: Plan, answer: { readonly kind: string; readonly value?: unknown }): boolean {
  return (
    isJsonObject(answer.value) && answer.value['args'] === plan.args && answer.value['route'] === plan.route
  )
}

/** The work: takes its time, and may fail. */
function fulfillmentOf({ runs }: Door, { ports }: Life, plan: Plan): Fulfillment {
  return {
    run: async ({ timeLeft }) => {
      const run = (runs.get(plan.id) ?? 0) + 1
      runs.set(plan.id, run)
      await ports.sleep(Math.min(plan.work, timeLeft))
      if (plan.work > timeLeft) throw new Failure('handler_timeout', 'the work took too long')
      if (run <= plan.failures) throw new Failure('source_timeout', 'the source is away')
      return { kind: 'json', value: { route: plan.route, args: plan.args, run } }
    },
    preflight: undefined,
    store: undefined,
  }
}

function hexOf(text: string): `0x${string}` {
  return `0x${text.slice(2)}`
}
