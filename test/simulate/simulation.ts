import type { Ledger } from '../../src/engine/ledger/ledger.ts'
import type { PaymentRecord } from '../../src/engine/ledger/payment-record.ts'
import { readAnswer } from '../../src/engine/ledger/answers.ts'
import { BLOCK_MS, SimulatedChain } from './chain.ts'
import { VirtualClock } from './clock.ts'
import { drawPlans, shop, type Buyer, type Door, type Plan, type Told } from './buyer.ts'
import { Channel } from './channel.ts'
import { allowanceName } from './contracts.ts'
import { SimulatedFacilitator } from './facilitator.ts'
import { drawFacilitatorFaults, drawFailovers, drawFaults, type Fault, type StoreKind } from './faults.ts'
import { isFinished, nameOf, violationsOf } from './invariants.ts'
import { BASE, makeWallet, openMarket, WAYS, type Wallet, type Way } from './market.ts'
import {
  listAccounts,
  type ChannelAccount,
} from '../../src/engine/x402/batch-settlement-evm/channel-account.ts'
import { encodeBase58 } from '../../src/engine/base/base58.ts'
import { createSvmAccount, openSvmAccount, type SvmAccount } from '../../src/engine/base/svm-signature.ts'
import { SimulatedNode } from './node.ts'
import { SimulatedSvmChain } from './svm-chain.ts'
import { SimulatedSvmNode } from './svm-node.ts'
import type { Terms, World } from './ports.ts'
import { startLife, type Life } from './process.ts'
import { randomOf } from './random.ts'
import { openSimulatedLedger, StoredData } from './store.ts'
import { Trace } from './trace.ts'

/** Everything that makes a run what it is. */
export interface History {
  readonly seed: number
  readonly store: StoreKind
  readonly processes: number
  readonly ways: readonly Way[]
  readonly settlers: 'own accounts' | 'facilitators'
  readonly plans: readonly Plan[]
  readonly faults: readonly Fault[]
}

export interface Outcome {
  /** Empty when all invariants hold. */
  readonly violations: readonly string[]
  readonly trace: readonly string[]
  /** Equal for equal traces. */
  readonly digest: string
  /** Number of payments that were charged. */
  readonly charges: number
  /** Number of events. */
  readonly steps: number
}

/** How long purchases begin and faults happen. */
const BUSY_MS = 60_000
/** Virtual time in which everything is finished once faults are over. */
const PATIENCE_MS = 45 * 60_000
const BUYERS = 8
/** Virtual time in which payers that withdraw from their channels have taken what they can. */
const WITHDRAWAL_MS = 17 * 60_000
/** Virtual time in which the shop sells again. */
const LAST_MS = 15 * 60_000
const START = 1_800_000_000_000
const [USUAL, DEARER] = [openMarket(0.005), openMarket(0.006)]

/** Bought when everything is over. */
function lastPlan(id: number, way: Way, buyer: number): Plan {
  const args = id === -1 ? 'only the last' : `only the last ${id}`
  return { ...LAST, id, way, buyer, args }
}

const LAST = {
  route: 'tide',
  at: 0,
  copies: 1,
  patience: undefined,
  retry: 'again',
  trouble: 'none',
  work: 10,
  failures: 0,
  units: 1,
  afterwards: 'nothing',
} as const satisfies Partial<Plan>

export function drawHistory(
  seed: number,
  store: StoreKind,
  purchases: number,
  ways: readonly Way[] = WAYS,
): History {
  const random = randomOf(seed, 'history')
  const processes = random.between(1, 4)
  const plans = drawPlans(seed, purchases, BUYERS, BUSY_MS, ways)
  const faults = drawFaults(seed, store, processes, BUSY_MS)
  return { seed, store, processes, ways, settlers: 'own accounts', plans, faults }
}

/** The history, in which two facilitators settle, the second when the first is away. */
export function withFacilitators(history: History): History {
  const faults = [...history.faults, ...drawFacilitatorFaults(history.seed, BUSY_MS)]
  return { ...history, settlers: 'facilitators', faults }
}

/** The history, in which the store also takes back what it has acknowledged. */
export function withFailovers(history: History): History {
  return { ...history, faults: [...history.faults, ...drawFailovers(history.seed, BUSY_MS)] }
}

/** Runs a history to its end. The same history has the same trace. */
export async function simulate({
  seed,
  processes,
  ways,
  settlers,
  plans,
  faults,
}: History): Promise<Outcome> {
  const clock = new VirtualClock(START)
  const trace = new Trace(clock)
  const chain = new SimulatedChain(BASE.token.address, BASE.chainId, clock.now)
  const node = new SimulatedNode(chain)
  const svmChain = new SimulatedSvmChain(clock, randomOf(seed, 'svm blocks'))
  const svmNode = new SimulatedSvmNode(svmChain)
  const [svmFeePayer, svmPayee] = [svmAccountOf(signerSeed(0)), svmAccountOf(signerSeed(1))]
  const data = new StoredData()
  const ledger = noted(
    openSimulatedLedger(data, () => clock.now),
    trace,
  )
  const wallets = Array.from({ length: BUYERS }, (_, buyer) => makeWallet(randomOf(seed, `wallet ${buyer}`)))
  const [signer, nextSigner] = [makeWallet(randomOf(0, 'signer')), makeWallet(randomOf(0, 'next signer'))]
  const [channelKey, nextChannelKey] = [
    makeWallet(randomOf(0, 'channels')),
    makeWallet(randomOf(0, 'next channels')),
  ]
  let terms: Terms = { market: USUAL, signerKeys: [signer.key], channelKeys: [channelKey.key] }
  const payee = makeWallet(randomOf(0, 'payee'))
  const lastWallet = makeWallet(randomOf(seed, 'last wallet'))
  const buyerOf = (wallet: Wallet, name: string): Buyer => {
    const random = randomOf(seed, `channel of ${name}`)
    // Some payers have a key of its own for vouchers.
    const authorizer = random.chance(0.7) ? wallet : makeWallet(random)
    return {
      wallet,
      svm: svmAccountOf(Buffer.from(wallet.key.slice(2), 'hex')),
      channel: new Channel(chain, wallet, authorizer, random.hex(32)),
    }
  }
  const buyers = wallets.map((wallet, place) => buyerOf(wallet, `buyer ${place}`))
  const lastBuyer = buyerOf(lastWallet, 'the last')
  for (const { svm } of [...buyers, lastBuyer]) svmChain.give(svm.address, 10n ** 9n)
  svmChain.give(svmPayee.address, 0n)
  for (const { address } of [...wallets, lastWallet]) {
    chain.give(address, 10n ** 9n)
    chain.set(allowanceName(address), 10n ** 18n)
  }
  for (const { address } of [signer, nextSigner]) chain.fund(address, 10n ** 18n)
  const facilitators = new Map(
    (settlers === 'own accounts' ? [] : FACILITATORS).map(([url, memory]) => {
      const account = makeWallet(randomOf(0, url))
      return [url, new SimulatedFacilitator({ chain, clock }, account, memory, randomOf(seed, url))]
    }),
  )
  const violations: string[] = []
  /** What a failover of the store has taken back: ids of records, and names of states. */
  const lost = new Set<string>()
  const powerCuts = new Set<number>()
  /** Whether the faults are over: a kill is drawn by the number of a call, which may come late. */
  let isCalm = false
  const torn = randomOf(seed, 'torn')
  const calls = new Map<number, number>()
  const kills = faults.filter((fault) => fault.kind === 'kill')
  const lives: (Life | undefined)[] = Array.from({ length: processes }, () => undefined)
  let born = 0
  const world: World = {
    seed,
    clock,
    chain,
    node,
    svmChain,
    svmNode,
    facilitators,
    ledger,
    trace,
    ways,
    weather: randomOf(seed, 'weather'),
    nodeTroubles: new Set(),
    storeTroubles: new Set(),
    payTo: payee.address,
    svmPayTo: svmPayee.address,
    svmFeePayer,
    terms: () => terms,
    isLost: (from) => [...powerCuts].some((at) => at >= from) && torn.chance(0.5),
    violate: (what) => violations.push(what),
    nextCall: (process) => {
      const next = (calls.get(process) ?? 0) + 1
      calls.set(process, next)
      return next
    },
    dies: (process, call, when) => {
      const fault = kills.find((each) => each.process === process && each.call === call && each.when === when)
      if (fault === undefined || isCalm) return false
      trace.note(`process ${process + 1}`, `is killed ${when} call ${call}`)
      restartLater(process, fault.down)
      return true
    },
  }
  const start = async (process: number): Promise<void> => {
    born += 1
    trace.note(`process ${process + 1}`, 'starts')
    const life = await startLife(world, process, born)
    lives[process] = life
    life.ports.onDeath(() => {
      if (lives[process] === life) lives[process] = undefined
    })
  }
  const restartLater = (process: number, down: number): void => {
    clock.after(down, () => start(process))
  }
  const runs = new Map<number, number>()
  const told: Told[] = []
  const door: Door = {
    open: (random) => {
      const open = lives.filter((life) => life !== undefined)
      return open.length === 0 ? undefined : random.oneOf(open)
    },
    tell: (each) => told.push(each),
    runs,
  }

  for (let process = 0; process < processes; process += 1) await start(process)
  const blocks = randomOf(seed, 'blocks')
  const mineLater = (): void => {
    clock.after(BLOCK_MS + blocks.between(-300, 300), () => {
      chain.mine(clock.now)
      mineLater()
    })
  }
  mineLater()
  if (settlers === 'facilitators')
    for (const { address } of wallets.slice(0, POOR)) {
      chain.give(address, 0n)
      topUp(address)
    }
  for (const fault of faults) begin(fault)
  let shopping = plans.length
  for (const plan of plans) {
    const buyer = buyers[plan.buyer]
    if (buyer !== undefined)
      void shop(world, door, buyer, plan).finally(() => {
        shopping -= 1
      })
  }

  let looked = 0
  const isDone = (): boolean => {
    if (shopping > 0 || violations.length > 0) return violations.length > 0
    if (clock.now < START + BUSY_MS + 30_000 || clock.now - looked < 5_000) return false
    looked = clock.now
    return [...data.records.values()].every(isFinished)
  }
  await clock.run(isDone, START + BUSY_MS + PATIENCE_MS)
  if (shopping > 0 && violations.length === 0) violations.push(`${shopping} buyers still wait for an answer`)
  // The shop sells again in every way, which also closes every gap in the nonces of the accounts that it uses; and every
  // channel goes on. What other accounts left in the pool has expired, and waits for their next use.
  const calmSince = clock.now
  const lasts = new Map<Plan, Buyer>(
    ways.map((way, place) => [lastPlan(-1 - place, way, -1), lastBuyer] as const),
  )
  // A payer whose money was gone when it was to be moved is not served for a while, nor one that withdraws.
  const troubled = new Set(plans.flatMap(({ buyer, trouble }) => (trouble === 'none' ? [] : [buyer])))
  for (const [place, buyer] of buyers.entries())
    if (buyer.channel.configs.size > 0 && !troubled.has(place))
      lasts.set(lastPlan(-10 - place, 'batch-settlement', place), buyer)
  const isAnswered = (plan: Plan): boolean =>
    told.some((each) => each.plan === plan && each.outcome === 'answered')
  const sell = async (plan: Plan, buyer: Buyer): Promise<void> => {
    while (!isAnswered(plan)) {
      await shop(world, door, buyer, plan)
      await clock.sleep(20_000)
    }
  }
  isCalm = true
  const unanswered = (): Plan | undefined => [...lasts.keys()].find((plan) => !isAnswered(plan))
  if (violations.length === 0) {
    for (const [plan, buyer] of lasts) void sell(plan, buyer)
    const isOver = (): boolean =>
      violations.length > 0 || (unanswered() === undefined && chain.waitingOfUsed(calmSince) === 0)
    if (!(await clock.run(isOver, clock.now + LAST_MS))) {
      const plan = unanswered()
      if (plan !== undefined)
        violations.push(`after the faults nothing can be bought by ${plan.way} (purchase ${plan.id})`)
    }
  }
  // Blocks that make everything final, and the last looks at them.
  const end = clock.now + 5 * 60_000
  if (violations.length === 0) await clock.run(() => violations.length > 0, end)
  const accounts = async (): Promise<ReadonlyMap<string, ChannelAccount>> => {
    const found = new Map<string, ChannelAccount>()
    for await (const { id, account } of listAccounts(ledger, BASE.id)) found.set(id, account)
    return found
  }
  if (violations.length === 0 && ways.includes('batch-settlement')) await claimAll()
  const records: PaymentRecord[] = [...data.records.values()]
  const answered = new Set<string>()
  for (const record of records)
    if ((await readAnswer(ledger.answers, record)) !== undefined) answered.add(record.id)
  const found = violationsOf({
    chain,
    svmChain,
    records,
    answered,
    told,
    plans: [...plans, ...lasts.keys()],
    channels: await accounts(),
    lost,
    calmSince,
    now: clock.now,
  })
  for (const life of lives) life?.ports.kill()
  return {
    violations: [...violations, ...found],
    trace: trace.lines,
    digest: trace.digest,
    charges: records.filter(({ receipt }) => receipt !== undefined).length,
    steps: clock.steps,
  }

  /** A payer has money for one payment, again and again. */
  function topUp(from: string): void {
    chain.happen({ kind: 'receive', from, until: ONE_PAYMENT })
    clock.after(TOP_UP_MS, () => topUp(from))
  }

  /** Payers take what they withdraw, and then an operator claims what is left. */
  async function claimAll(): Promise<void> {
    await clock.run(() => violations.length > 0, START + BUSY_MS + WITHDRAWAL_MS)
    let claims = 1
    const [first] = lives.filter((life) => life !== undefined)
    void first?.claim().then(() => (claims = 0))
    await clock.run(() => claims === 0, clock.now + LAST_MS)
  }

  function changed(before: Terms, what: Extract<Fault, { kind: 'rollout' }>['what']): Terms {
    switch (what) {
      case 'new price':
        return { ...before, market: DEARER }
      case 'new key':
        return { ...before, signerKeys: [nextSigner.key, ...before.signerKeys] }
      case 'new channel key':
        return { ...before, channelKeys: [nextChannelKey.key, ...before.channelKeys] }
    }
  }

  function begin(fault: Fault): void {
    switch (fault.kind) {
      case 'kill':
        return
      case 'pause':
        clock.after(fault.at, () => {
          trace.note(`process ${fault.process + 1}`, `is paused for ${fault.ms} ms`)
          lives[fault.process]?.ports.pause(fault.ms)
        })
        return
      case 'node':
        clock.after(fault.at, () => {
          trace.note('node', `${fault.what} for ${fault.ms} ms`)
          if (fault.what === 'forgets its pool') {
            chain.forgetPool()
            svmChain.forgetPool()
            return
          }
          world.nodeTroubles.add(fault.what)
          if (fault.what === 'refuses batches') node.batches = svmNode.batches = 'refused'
          if (fault.what === 'lags') [node.lag, svmNode.lag] = [2, SVM_LAG_MS]
          if (fault.what === 'mixes blocks') node.mixesBlocks = true
          clock.after(fault.ms, () => {
            world.nodeTroubles.delete(fault.what)
            if (fault.what === 'refuses batches') node.batches = svmNode.batches = 'taken'
            if (fault.what === 'lags') node.lag = svmNode.lag = 0
            if (fault.what === 'mixes blocks') node.mixesBlocks = false
          })
        })
        return
      case 'store':
        clock.after(fault.at, () => {
          trace.note('store', `${fault.what} for ${fault.ms} ms`)
          world.storeTroubles.add(fault.what)
          clock.after(fault.ms, () => world.storeTroubles.delete(fault.what))
        })
        return
      case 'facilitator':
        clock.after(fault.at, () => {
          trace.note(`facilitator ${fault.which + 1}`, `${fault.what} for ${fault.ms} ms`)
          const troubles = [...facilitators.values()][fault.which]?.troubles
          troubles?.add(fault.what)
          clock.after(fault.ms, () => troubles?.delete(fault.what))
        })
        return
      case 'failover':
        clock.after(fault.at, () => {
          const undone = data.rollBack(clock.now - fault.ms)
          trace.note('store', `fails over and loses ${undone.size} changes of ${fault.ms} ms`)
          for (const each of undone) lost.add(each)
        })
        return
      case 'power cut':
        clock.after(fault.at, () => {
          trace.note('machine', 'loses power')
          powerCuts.add(clock.now)
          for (const [process, life] of lives.entries()) {
            if (life === undefined) continue
            life.ports.kill()
            restartLater(process, fault.down)
          }
        })
        return
      case 'reorganisation':
        clock.after(fault.at, () => {
          trace.note('chain', `undoes ${fault.depth} blocks, pool ${fault.pool}`)
          chain.reorganize(fault.depth, fault.pool, clock.now)
          svmChain.fork(fault.pool)
        })
        return
      case 'rollout':
        clock.after(fault.at, () => {
          trace.note('operator', fault.what)
          terms = changed(terms, fault.what)
          for (const process of lives.keys())
            clock.after(process * fault.down, () => {
              const life = lives[process]
              if (life === undefined) return
              life.ports.kill()
              restartLater(process, fault.down)
            })
        })
        return
      case 'fees':
        clock.after(fault.at, () => {
          trace.note('chain', `asks for ${fault.gwei} gwei`)
          chain.setBaseFee(BigInt(fault.gwei) * 1_000_000_000n)
          clock.after(fault.ms, () => chain.setBaseFee(10_000_000n))
        })
    }
  }
}

/** Where facilitators are, and what they know of payments that they are asked for again. */
const FACILITATORS = [
  ['https://first.example', 'none'],
  ['https://second.example', 'same answer'],
] as const

/** How many payers have money for one payment at a time: asked again, a facilitator may say that there is too little. */
const POOR = 3
const ONE_PAYMENT = 6_000n
const TOP_UP_MS = 5_000

/** How old the newest block of a node of Solana is that lags. */
const SVM_LAG_MS = 4_000

/** The same in every run. */
function signerSeed(place: number): Uint8Array {
  return randomOf(place, 'accounts of Solana').bytes(32)
}

function svmAccountOf(seed: Uint8Array): SvmAccount {
  const account = openSvmAccount(encodeBase58(createSvmAccount(seed).pair))
  if (account === undefined) throw new Error('a seed makes an account')
  return account
}

/** Writes every change of a record into the trace. */
function noted(ledger: Ledger, trace: Trace): Ledger {
  const note = (before: PaymentRecord | undefined, after: PaymentRecord | undefined): void => {
    const { key, owner } = after ?? before ?? { key: '', owner: '' }
    const state =
      after === undefined ? 'removed' : after.state + (after.receipt === undefined ? '' : ', charged')
    if (before?.state !== after?.state || before?.receipt !== after?.receipt)
      trace.note('store', `payment ${nameOf(key)} is ${state} (${owner})`)
  }
  const commit: Ledger['commit'] = async (changes, states) => {
    const made = await ledger.commit(changes, states)
    if (made) for (const { previous, next } of changes) note(previous, next)
    return made
  }
  return {
    ...ledger,
    insert: async (record) => {
      const standing = await ledger.insert(record)
      if (standing === undefined) note(undefined, record)
      return standing
    },
    commit,
    replace: (previous, next) => commit([{ previous, next }]),
    remove: (record) => commit([{ previous: record, next: undefined }]),
  }
}
