import { compact, digestJson, isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'
import { formatShort, type Micros, toMicros } from '../../engine/base/money.ts'
import { findAnyNetwork, findSvmNetwork } from '../../engine/base/networks.ts'
import type { BuyerRuntime } from '../buyer-runtime.ts'
import { type Channels, isByChannel, type Noted } from '../channels/channels.ts'
import { findOffers, noteAnswer } from '../protocols/all.ts'
import type { AccountKind, Offer, PayingProtocol, Signing } from '../protocols/paying-protocol.ts'
import { isEarlier, settle, type Settled } from '../settle.ts'
import { accountsOf, signOffer, type Wallet } from '../wallet.ts'
import type { Budget, OpenPayment } from './budget.ts'
import { callTool, type RemoteTool } from './remote-tools.ts'
import type { Turns } from './turns.ts'

/** Who pays, and how much at most. */
export interface Buyer {
  readonly wallet: Wallet
  readonly channels: Channels | undefined
  /** By the kind of account. */
  readonly addresses: Readonly<Record<AccountKind, string | undefined>>
  /** In order of preference. */
  readonly protocols: readonly PayingProtocol[]
  readonly budget: Budget
  /** Payments of which the next one depends on what the last one has left. */
  readonly turns: Turns
  readonly maxPerCall: Micros
  /** Above which amount a person is asked, and what is done where the client cannot ask. */
  readonly asking: { readonly above: Micros; readonly ifUnable: 'pay' | 'refuse' }
  /** Log of this process. */
  readonly log: (line: string) => void
  readonly runtime: BuyerRuntime
}

/** The answer of a person to a question; `unable`: the client cannot ask. */
export type Consent = 'given' | 'refused' | 'open' | 'unable'

export interface ToolCall {
  readonly tool: RemoteTool
  readonly args: Json
  /** The answer to a question, by the key of the question. */
  readonly consent: (key: string) => Consent
}

export type Bought =
  | {
      readonly kind: 'result'
      readonly result: JsonObject
      /** Must be called when the result has been sent: until then the same call gets the same payment. */
      readonly delivered?: () => Promise<void>
    }
  | { readonly kind: 'question'; readonly key: string; readonly message: string }

/** Calls a tool and pays for it within the budget. */
export async function buyCall(buyer: Buyer, call: ToolCall): Promise<Bought> {
  const { tool, args } = call
  const id = idOf(call)
  const kept = buyer.budget.find(id)
  let answer
  if (kept === undefined) answer = await callTool(tool, args, {})
  else {
    const { settled, noted } = await sendAlone(buyer, call, kept)
    // The earlier payment can no longer be charged: another one is signed.
    const isOver = noted.kind === 'corrected' || settled.charged === 'no'
    if (!isOver || settled.answer?.status !== 402) return conclude(buyer, call, kept, settled)
    await closeUnanswered(buyer, id, kept, noted)
    ;({ answer } = settled)
  }
  if (answer === undefined) return failure(`${tool.endpoint.origin} does not answer. Nothing was paid.`)
  if (answer.status !== 402) return { kind: 'result', result: answer.result }
  let unsigned = `${tool.name} has no offer that can be paid here`
  for (const offer of findOffers(answer.reply, buyer.protocols, accountsOf(buyer.wallet))) {
    const refusal = refuse(buyer, call, offer)
    if (refusal !== undefined) return refusal
    const bought = await inTurn(buyer, offer, () => payOffer(buyer, call, offer))
    if (bought.kind !== 'unsigned') return bought
    unsigned = `Nothing was paid: ${bought.reason}`
    // Where no channel can be used, the next offer is as good.
    if (offer.channel === undefined) break
    buyer.log(`${tool.name}: ${bought.reason}`)
  }
  return failure(`${unsigned}.`)
}

function inTurn<T>({ turns, channels }: Buyer, offer: Offer, work: () => Promise<T>): Promise<T> {
  if (offer.channel !== undefined && channels !== undefined) return channels.alone(work)
  // Both would count on the same allowance of Permit2, and the second one would not settle.
  return offer.amountIs === 'ceiling' ? turns.take(work) : work()
}

type Unsigned = Extract<Signing, { readonly kind: 'unsigned' }>

async function payOffer(buyer: Buyer, call: ToolCall, offer: Offer): Promise<Bought | Unsigned> {
  const id = idOf(call)
  for (let tries = 1; ; tries += 1) {
    const signing = await signOffer(offer, buyer, buyer.runtime)
    if (signing.kind === 'unsigned') return signing
    const { meta, deposit } = signing
    if (deposit !== undefined)
      buyer.log(`${call.tool.name}: a deposit of ${formatShort(deposit)} USD goes with the payment`)
    const { protocol, network, amount, amountIs } = offer
    const reserved = await buyer.budget.reserve(id, { protocol, network, amount, amountIs, meta })
    if (reserved.kind === 'over') return overBudget(buyer, call, offer)
    const { payment } = reserved
    const settled = await send(buyer, call, payment, reserved.kind === 'reserved' ? 1 : 2)
    const noted = await noteAnswer(buyer.channels, payment, settled.answer?.reply)
    if (noted.kind === 'noted' || tries > 1) return conclude(buyer, call, payment, settled)
    await closeUnanswered(buyer, id, payment, noted)
  }
}

interface SentAgain {
  readonly settled: Settled<ToolAnswer>
  readonly noted: Noted
}

/** Sends a payment of an earlier call again, while no other call of its channel is paid. */
function sendAlone(buyer: Buyer, call: ToolCall, kept: OpenPayment): Promise<SentAgain> {
  const again = async (): Promise<SentAgain> => {
    const settled = await send(buyer, call, kept, 2)
    return { settled, noted: await noteAnswer(buyer.channels, kept, settled.answer?.reply) }
  }
  return buyer.channels !== undefined && isByChannel(kept.meta) ? buyer.channels.alone(again) : again()
}

/** A payment that will not be answered: a voucher that was charged for a call whose answer is lost counts as spent. */
function closeUnanswered({ budget }: Buyer, id: string, payment: OpenPayment, noted: Noted): Promise<void> {
  const isSpent = noted.kind === 'corrected' && noted.isSpent
  return budget.close(id, payment, isSpent ? payment.amount : toMicros(0n))
}

/** The same for the same arguments. */
function idOf({ tool, args }: Pick<ToolCall, 'tool' | 'args'>): string {
  return digestJson([tool.endpoint.href, tool.name, args])
}

type ToolAnswer = NonNullable<Awaited<ReturnType<typeof callTool>>>

function send(
  { log, runtime }: Buyer,
  { tool, args }: ToolCall,
  payment: OpenPayment,
  attempt: number,
): Promise<Settled<ToolAnswer>> {
  const tell = (line: string): void => log(`${tool.name}: ${line}`)
  if (attempt > 1) tell('an earlier payment for the same call is sent again')
  return settle({
    ask: () => callTool(tool, args, payment.meta),
    payment,
    attempt,
    tell,
    sleep: runtime.sleep,
  })
}

/** Why an offer is refused, or what a person must be asked first. */
function refuse(buyer: Buyer, call: ToolCall, offer: Offer): Bought | undefined {
  const { budget, maxPerCall, asking } = buyer
  const { tool, consent } = call
  const price = formatShort(offer.amount)
  const costs = verbOf(offer)
  if (offer.amount > maxPerCall)
    return failure(
      `${tool.name} ${costs} ${price} USD, more than the ${formatShort(maxPerCall)} USD allowed for one call. Nothing was paid. To buy it, start this MCP server with a higher --max-per-call.`,
    )
  const { used } = budget.used()
  if (used + lockedBeside(buyer, offer) + offer.amount > budget.max) return overBudget(buyer, call, offer)
  if (offer.amount <= asking.above) return undefined
  const key = `pay-${offer.amount}`
  switch (consent(key)) {
    case 'given':
      return undefined
    case 'refused':
      return failure(`${price} USD for ${tool.name} were declined. Nothing was paid.`)
    case 'unable':
      if (asking.ifUnable === 'pay') return undefined
      return failure(
        `${tool.name} ${costs} ${price} USD, and this client cannot ask its user. Nothing was paid. To buy it, start this MCP server with a higher --ask-above, or without it.`,
      )
    case 'open': {
      const left = formatShort(toMicros(budget.max - used))
      const most = offer.amountIs === 'ceiling' ? 'at most ' : ''
      const message = `Pay ${most}${price} USD (${offer.money}) to ${tool.endpoint.host} for one call of ${tool.name}? ${left} of ${formatShort(budget.max)} USD are left.`
      return { kind: 'question', key, message }
    }
  }
}

function verbOf({ amountIs }: Offer): string {
  return amountIs === 'ceiling' ? 'may cost' : 'costs'
}

/** What lies in channels, and may be charged later, where the offer is not paid from it. */
function lockedBeside({ channels }: Buyer, offer: Offer): bigint {
  return offer.channel === undefined && channels !== undefined ? channels.unspent() : 0n
}

function overBudget(buyer: Buyer, { tool }: ToolCall, offer: Offer): Bought {
  const { budget } = buyer
  const { used, since } = budget.used()
  const locked = lockedBeside(buyer, offer)
  const beside = locked === 0n ? '' : `, and ${formatShort(toMicros(locked))} USD lie in a channel`
  return failure(
    `${tool.name} ${verbOf(offer)} ${formatShort(offer.amount)} USD, and ${formatShort(used)} of the budget of ${formatShort(budget.max)} USD are spent since ${since.slice(0, 10)}${beside}. Nothing was paid. To buy it, start this MCP server with a higher --max.`,
  )
}

function failure(text: string, meta?: JsonObject): Bought {
  const content = [{ type: 'text', text }]
  return { kind: 'result', result: compact({ isError: true, content, _meta: meta }) }
}

/** The answer with its receipt, and the outcome of the payment. */
async function conclude(
  { budget, addresses, log }: Buyer,
  { tool, args }: ToolCall,
  payment: OpenPayment,
  { answer, charged, amount, transaction }: Settled<ToolAnswer>,
): Promise<Bought> {
  const { network, amountIs } = payment
  const meta = answer?.result['_meta']
  const sold = isJsonObject(meta) ? meta : {}
  const isUnknown = answer === undefined || (charged === 'unknown' && answer.status !== 200)
  const isFree = charged === 'no'
  const receipt = {
    payment: sold['ratecard/payment'] ?? null,
    amount: formatShort(amount),
    ...(amountIs === 'ceiling' && { authorized: formatShort(payment.amount) }),
    currency: 'USD',
    network,
    transaction: transaction ?? null,
    payer: addresses[findSvmNetwork(network) === undefined ? 'evm' : 'svm'] ?? null,
    charged: isUnknown ? 'unknown' : isFree ? 'no' : 'yes',
  }
  const isLess = amountIs === 'ceiling' && !isUnknown
  const most = isLess ? ` of at most ${formatShort(payment.amount)}` : ''
  const price = `${formatShort(amount)}${most} USD on ${findAnyNetwork(network)?.title ?? network}`
  if (isUnknown) {
    log(`${tool.name}: the outcome of a payment of ${price} is not known`)
    const text = `A payment of ${price} was sent for ${tool.name}, and its outcome is not known. It counts against the budget. Call the tool again with the same arguments: the same payment is sent again, and it is charged once at most.`
    return failure(text, { 'ratecard/receipt': receipt })
  }
  const id = idOf({ tool, args })
  if (isFree) await budget.close(id, payment, toMicros(0n))
  const left = formatShort(budget.leftAfter(id, amount))
  const paid = isFree
    ? isEarlier(answer.reply)
      ? 'Bought before: nothing was charged now.'
      : 'Nothing was charged.'
    : `Paid ${price}${transaction === undefined ? '' : `, transaction ${transaction}`}. ${left} of ${formatShort(budget.max)} USD are left.`
  log(`${tool.name}: ${paid}`)
  const content = Array.isArray(answer.result['content']) ? answer.result['content'] : []
  const result = {
    ...answer.result,
    content: [...content, { type: 'text', text: paid }],
    _meta: { ...sold, 'ratecard/receipt': receipt },
  }
  // What was charged and has failed is run again for the same payment.
  const isOwed = answer.status !== 200 && isJsonObject(answer.body) && answer.body['retryable'] === true
  if (isFree || isOwed) return { kind: 'result', result }
  return { kind: 'result', result, delivered: () => budget.close(id, payment, amount) }
}
