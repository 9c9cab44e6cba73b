import { Failure } from '../../src/engine/base/errors.ts'
import type { PurchaseReply } from '../../src/engine/purchase/purchase.ts'
import type { Fulfillment } from '../../src/engine/purchase/request.ts'
import { meterWork } from '../../src/engine/purchase/metering.ts'
import { endOf } from '../../src/engine/purchase/usage-documents.ts'
import { quoteCall } from '../../src/engine/purchase/purchase.ts'
import { isJsonObject } from '../../src/engine/base/json.ts'
import type { Channel } from './channel.ts'
import type { PayersAct } from './contracts.ts'
import { MOST_UNITS, UNIT, type RouteName, type Wallet, type Way } from './market.ts'
import type { Life } from './process.ts'
import type { World } from './ports.ts'
import { nameOf } from './invariants.ts'
import { randomOf, type Random } from './random.ts'
import type { SvmAccount } from '../../src/engine/base/svm-signature.ts'
import { demandOf, signExact, signExactSvm, signUpto, type SignedPayment } from './sign.ts'

/** One thing that a buyer wants, and how it goes about it. */
export interface Plan {
  readonly id: number
  readonly buyer: number
  readonly way: Way
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
  /** What the payer does between the check and the settlement: `cancel` withdraws from a channel. */
  readonly trouble: 'none' | 'drain' | 'cancel' | 'revoke'
  /** Milliseconds that the work takes. */
  readonly work: number
  /** How often the work fails before it succeeds. */
  readonly failures: number
  /** What metered work uses. */
  readonly units: number
  /** What the buyer asks for when it has its answer. */
  readonly afterwards: 'nothing' | 'refund'
}

export function drawPlans(
  seed: number,
  count: number,
  buyers: number,
  ms: number,
  ways: readonly Way[],
): readonly Plan[] {
  const random = randomOf(seed, 'plans')
  // A stream of its own: runs in which everything is paid in one way stay as they were.
  const choice = randomOf(seed, 'ways')
  return Array.from({ length: count }, (_, id) => {
    const plan = drawPlan(id, buyers, ms, random)
    const way = choice.oneOf(ways)
    if (way === 'exact' || way === 'exact-svm') return { ...plan, way }
    const isRevoked = way === 'upto' && plan.trouble === 'cancel' && choice.chance(0.5)
    return {
      ...plan,
      way,
      ...(choice.chance(0.6) && { route: 'flow' as const }),
      ...(isRevoked && { trouble: 'revoke' as const }),
      units: choice.chance(0.2) ? 0 : choice.between(1, MOST_UNITS + 5),
      ...(way === 'batch-settlement' && choice.chance(0.06) && { afterwards: 'refund' as const }),
    }
  })
}

function drawPlan(id: number, buyers: number, ms: number, random: Random): Plan {
  return {
    id,
    way: 'exact',
    units: 0,
    afterwards: 'nothing',
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
  }
}

export function describePlan({ id, buyer, ...plan }: Plan): string {
  const { at, way, route, args, copies, patience = 'all', retry, trouble, work, failures } = plan
  const { units, afterwards } = plan
  return `purchase ${id} at ${at}: buyer ${buyer} by ${way}, ${route} (${args}), ${copies} at once, patience ${patience}, then ${retry}, ${trouble}, work ${work} ms of ${units} units, fails ${failures}×, then ${afterwards}`
}

/** What a buyer was told about a payment, or has seen of it. */
export interface Told {
  /** Undefined: of a payment that gets its key from what it buys, and of which nothing was heard. */
  readonly key: string | undefined
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

/** Who buys. */
export interface Buyer {
  readonly wallet: Wallet
  readonly svm: SvmAccount
  readonly channel: Channel
}

/** Longest wait for an answer. */
const LONGEST_MS = 100_000
const MOST_PAYMENTS = 4
/** A voucher is signed anew whenever another call of the same channel was faster. */
const MOST_VOUCHERS = 16
const MOST_REPEATS = 8
/** How long a trouble lasts. */
const TROUBLE_MS = 30_000

/** A buyer gets what it wants, or gives up. */
export async function shop(world: World, door: Door, buyer: Buyer, plan: Plan): Promise<void> {
  const { clock } = world
  const random = randomOf(world.seed, `plan ${plan.id}`)
  await clock.sleep(plan.at)
  const most = plan.way === 'batch-settlement' ? MOST_VOUCHERS : MOST_PAYMENTS
  for (let payments = 0; payments < most; payments += 1) {
    const life = door.open(random)
    if (life === undefined) {
      await clock.sleep(random.between(500, 3_000))
      continue
    }
    const signed = signFor(world, life, buyer, plan, random)
    if (payments === 0) begin(world, buyer, plan, signed, random)
    const turn = payments === 0 ? 'first' : 'later'
    if ((await pay(world, door, buyer, plan, signed, turn, random)) === 'done') {
      if (plan.afterwards === 'refund') await close(world, door, buyer, plan, random)
      return
    }
    await clock.sleep(random.between(200, 4_000))
  }
}

function signFor(
  { chain, svmChain, clock }: World,
  life: Life,
  { wallet, svm, channel }: Buyer,
  { way, route }: Plan,
  random: Random,
): SignedPayment {
  const demand = demandOf(life.protocol, life.routes[route], way)
  switch (way) {
    case 'exact':
      return signExact(chain, demand, wallet, random, clock.now)
    case 'upto':
      return signUpto(chain, demand, wallet, random, clock.now)
    case 'exact-svm':
      return signExactSvm(svmChain, demand, svm, random)
    case 'batch-settlement':
      return channel.sign(demand, random, clock.now)
  }
}

/** Begins what the payer does against its own payment. */
function begin(
  { chain, svmChain, clock }: World,
  { wallet: { address: from }, svm, channel }: Buyer,
  { trouble, way, work }: Plan,
  { nonce }: SignedPayment,
  random: Random,
): void {
  if (trouble === 'none') return
  const later = (act: PayersAct): unknown =>
    clock.after(random.between(0, work + 3_000), () => chain.happen(act))
  if (way === 'exact-svm') {
    // A transfer cannot be cancelled there: its payer moves the money away.
    clock.after(random.between(0, work + 3_000), () => svmChain.give(svm.address, 0n))
    clock.after(TROUBLE_MS, () => svmChain.give(svm.address, 10n ** 9n))
  } else if (trouble === 'drain') {
    later({ kind: 'spend', from, leave: 0n })
    // In a block of its own: what a reorganization undoes comes again.
    clock.after(TROUBLE_MS, () => chain.happen({ kind: 'receive', from, until: 10n ** 9n }))
  } else if (trouble === 'revoke') {
    later({ kind: 'allow', from, amount: 0n })
    clock.after(TROUBLE_MS, () => chain.happen({ kind: 'allow', from, amount: 10n ** 18n }))
  } else if (way !== 'batch-settlement') {
    later({ kind: way === 'exact' ? 'cancel' : 'invalidate', from, nonce })
  } else
    for (const config of channel.configs.values()) {
      later({ kind: 'withdraw', from, config })
      clock.after(config.withdrawDelay * 1_000 + 5_000, () => chain.happen({ kind: 'take', from, config }))
    }
}

/** Asks for what is left in the channel. */
async function close(
  { clock, trace }: World,
  door: Door,
  { channel }: Buyer,
  plan: Plan,
  random: Random,
): Promise<void> {
  const life = door.open(random)
  if (life === undefined) return
  const header = channel.signRefund(demandOf(life.protocol, life.routes[plan.route], plan.way))
  if (header === undefined) return
  trace.note(`buyer ${plan.buyer}`, `asks for a refund after purchase ${plan.id}`)
  await new Promise<void>((resolve) => {
    life.ports.onDeath(() => clock.after(1, resolve))
    clock.after(LONGEST_MS, resolve)
    life.ports.enter(() => {
      void life.act(header).then((result) => {
        if (result.kind === 'done') channel.learnRefund(result.result)
        trace.note(`buyer ${plan.buyer}`, `refund after purchase ${plan.id}: ${result.kind}`)
        clock.after(1, resolve)
      })
    })
  })
}

/** Sends one payment until its outcome is known. */
async function pay(
  world: World,
  door: Door,
  buyer: Buyer,
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
        return request(world, door, buyer, plan, signed, isFirst ? plan.patience : undefined, random)
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
  { channel }: Buyer,
  plan: Plan,
  signed: SignedPayment,
  patience: number | undefined,
  random: Random,
): Promise<Told['outcome']> {
  const { clock, trace } = world
  const name = `buyer ${plan.buyer}`
  const { key } = signed
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
        `purchase ${plan.id}, payment ${signed.name}: ${outcome}${about === key ? '' : ` by ${nameOf(about ?? '')}`}`,
      )
      door.tell({ key: about, plan, from, to: clock.now, outcome })
      resolve(outcome)
    }
    if (life === undefined) {
      clock.after(10, () => end('closed'))
      return
    }
    trace.note(name, `purchase ${plan.id} sends payment ${signed.name}`)
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
            ({ reply, key: about }) => {
              const heard: End = (outcome, named = about) => {
                if (open) channel.learn(reply)
                end(outcome, named)
              }
              answer(world, life, plan, reply, gone.signal, heard, () => open, random)
            },
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
      const { record, answer: stored } = reply
      if (!isAnswerTo(plan, stored)) world.violate(`purchase ${plan.id} got the answer of another one`)
      if (plan.route === 'flow' && record.amount !== costOf(stored))
        world.violate(`purchase ${plan.id} is charged ${record.amount} for work that costs ${costOf(stored)}`)
      life.sent(record, gone)
      later(() => isOpen() && end('answered', record.key))
      return
    }
    case 'offer':
      later(() => end('no'))
      return
    case 'fault': {
      const { charge, paid } = reply
      later(() => end(charge.charged, paid?.record.key))
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

/** What the work of an answer costs, in atomic units. */
function costOf(answer: { readonly kind: string; readonly value?: unknown }): string {
  const units = isJsonObject(answer.value) ? Number(answer.value['units']) : 0
  return String(Math.min(units, MOST_UNITS) * UNIT)
}

/** The work: takes its time, and may fail. */
function fulfillmentOf({ runs }: Door, { ports, routes }: Life, plan: Plan): Fulfillment {
  const { units } = plan
  const { operation } = routes[plan.route]
  return {
    run: async ({ timeLeft }) => {
      const run = (runs.get(plan.id) ?? 0) + 1
      runs.set(plan.id, run)
      await ports.sleep(Math.min(plan.work, timeLeft))
      if (plan.work > timeLeft) throw new Failure('handler_timeout', 'the work took too long')
      if (run <= plan.failures) throw new Failure('source_timeout', 'the source is away')
      const answer = { kind: 'json' as const, value: { route: plan.route, args: plan.args, run, units } }
      const { meter, id } = operation
      if (meter === undefined) return answer
      const ceiling = quoteCall(operation, {}).amount
      const metered = { id, meter, ceiling, report: () => undefined }
      const work = { answer: endOf(answer), usage: { units }, took: plan.work }
      return { kind: 'metered', answer, ...meterWork(metered, work) }
    },
    preflight: undefined,
    store: undefined,
  }
}
