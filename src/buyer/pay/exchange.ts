import { clean } from '../../command-line/printable.ts'
import { isJsonObject, type Json, type JsonObject } from '../../engine/base/json.ts'
import { formatShort } from '../../engine/base/money.ts'
import type { BuyerEnv } from '../../env/buyer-env.ts'
import type { BuyerRuntime } from '../buyer-runtime.ts'
import type { DepositRule } from '../channels/channels.ts'
import { findOffer, noteAnswer } from '../protocols/all.ts'
import type { Offer, PayingProtocol } from '../protocols/paying-protocol.ts'
import { type HttpCall, isAnswered, type Page, request } from '../http-call.ts'
import { isEarlier, settle, type Settled } from '../settle.ts'
import { readSignIn, signIn } from '../sign-in.ts'
import { accountsOf, channelsOf, findWallet, KEY_VARIABLES, signOffer } from '../wallet.ts'
import { sandboxUrl } from '../sandbox-file.ts'
import { readSignedReceipts } from '../protocols/x402.ts'
import type { Bill } from './bill.ts'
import type { Steps } from './steps.ts'

/** Exit codes a script can act on. */
const OVER_MAX = 3
const NOT_CHARGED = 4
const UNKNOWN = 5

/** What is to be paid for, and on which terms. */
export interface PurchaseRequest {
  readonly call: HttpCall
  /** Micro-dollars. */
  readonly max: bigint | undefined
  /** In order of preference. */
  readonly protocols: readonly PayingProtocol[]
  /** Of a payment through a channel. */
  readonly deposit: DepositRule
  /** What to do when the 402 says that the call would fail, uncharged. */
  readonly failing: 'refuse' | 'sign'
}

interface ExchangeContext {
  readonly env: BuyerEnv
  readonly runtime: BuyerRuntime
  readonly steps: Steps
}

/** Requests, pays what is asked, and requests again with the payment. */
export async function exchange(
  { env, runtime, steps }: ExchangeContext,
  { call, max, protocols, deposit, failing }: PurchaseRequest,
): Promise<Bill> {
  const { url } = call
  const print = (line: string): void => steps.print(line)
  const first = await request(call, {}, print)
  if (first === undefined)
    return { exit: NOT_CHARGED, status: 0, charged: 'no', body: null, note: `${url.origin} does not answer` }
  steps.tell(`${first.status} ${first.status === 402 ? 'payment required' : ''}`.trim())
  const said = { status: first.status, charged: 'no', body: first.body, ...contentOf(first) } as const
  if (first.status !== 402)
    return { ...said, exit: isAnswered(first.status) ? 0 : NOT_CHARGED, note: 'nothing was asked for' }
  const demand = readSignIn(first.reply)
  if (demand !== undefined) return signedIn({ env, runtime, steps }, call, { demand, said })
  const wallet = findWallet(url, env)
  const offer = findOffer(first.reply, protocols, accountsOf(wallet))
  if (offer === undefined)
    return { ...said, exit: NOT_CHARGED, note: 'no offer of this 402 can be signed here' }
  const fee = offer.fee === 'payer' ? ', and the network’s fee' : ''
  const most = offer.amountIs === 'ceiling' ? 'at most ' : ''
  steps.tell(
    `${most}${formatShort(offer.amount)} USD in ${offer.money} (${offer.network}) to ${offer.payTo}${fee}`,
  )
  if (max !== undefined && offer.amount > max)
    return {
      ...said,
      exit: OVER_MAX,
      offer,
      note: offer.amountIs === 'ceiling' ? 'what it may cost is over --max' : 'the price is over --max',
    }
  const reason = failing === 'sign' ? undefined : failureOf(first.body)
  if (reason !== undefined)
    return {
      ...said,
      exit: NOT_CHARGED,
      offer,
      note: `the call would fail: ${reason}; --anyway sends the payment nevertheless`,
    }
  if (wallet === undefined)
    return { ...said, exit: NOT_CHARGED, offer, note: noWallet(env, KEY_VARIABLES[offer.account]) }
  if (wallet.kind === 'environment' && max === undefined) {
    return { ...said, exit: OVER_MAX, offer, note: 'a real wallet needs --max USD' }
  }
  const channels =
    offer.channel && channelsOf(wallet, { shop: url, stateDir: env.stateDir, rule: deposit }, runtime)
  const purse = { wallet, channels }
  const buy = async (): Promise<Bill> => {
    for (let tries = 1; ; tries += 1) {
      const signing = await signOffer(offer, purse, runtime)
      if (signing.kind === 'unsigned') return { ...said, exit: NOT_CHARGED, offer, note: signing.reason }
      const added =
        signing.deposit === undefined ? '' : `, with a deposit of ${formatShort(signing.deposit)} USD`
      steps.tell(`signed by ${signing.payer}${added}`)
      const settled = await settle({
        ask: () => request(call, signing.headers, print),
        payment: offer,
        attempt: 1,
        tell: (line) => steps.tell(line),
        sleep: runtime.sleep,
      })
      const payment = { protocol: offer.protocol, meta: signing.meta }
      const noted = await noteAnswer(channels, payment, settled.answer?.reply)
      if (noted.kind === 'noted' || tries > 1) return billOf(offer, settled, steps)
      steps.tell('the shop says where the channel stands: another voucher is signed')
    }
  }
  return channels === undefined ? buy() : channels.alone(buy)
}

/** The parts of a metered amount in one line. */
function usageText(usage: Json | undefined): string {
  const parts = (Array.isArray(usage) ? usage : []).flatMap((each) => {
    const { part, count, amount } = isJsonObject(each) ? each : {}
    if (typeof part !== 'string' || typeof amount !== 'string') return []
    const counted = typeof count === 'number' ? ` ${count}` : ''
    return [`${part}${counted} = ${amount}`]
  })
  return parts.length === 0 ? '' : clean(`: ${parts.join(', ')}`)
}

function noWallet({ dataDir }: BuyerEnv, variable: string): string {
  const sandbox = sandboxUrl(dataDir)
  const other =
    sandbox === undefined ? 'start a sandbox here' : `call the sandbox by its own address, ${sandbox}`
  return `no wallet: set ${variable}, or ${other}`
}

/** Requests what is free with the proof of an address that it asks for. */
async function signedIn(
  { env, steps }: ExchangeContext,
  call: HttpCall,
  { demand, said }: { readonly demand: JsonObject; readonly said: Omit<Bill, 'exit'> },
): Promise<Bill> {
  const { url } = call
  const wallet = findWallet(url, env)
  const key = wallet?.evm?.x402
  if (key === undefined) return { ...said, exit: NOT_CHARGED, note: noWallet(env, KEY_VARIABLES.evm) }
  const signed = await signIn(demand, url, key)
  if (signed.kind === 'unsigned') return { ...said, exit: NOT_CHARGED, note: signed.reason }
  steps.tell(`free, and asks who calls: signed in as ${signed.address}`)
  const answer = await request(call, signed.headers, (line) => steps.print(line))
  if (answer === undefined)
    return { ...said, exit: NOT_CHARGED, status: 0, body: null, note: `${url.origin} does not answer` }
  const { status, body } = answer
  return { exit: isAnswered(status) ? 0 : NOT_CHARGED, status, charged: 'no', body, ...contentOf(answer) }
}

/** Why the shop expects the call to fail; undefined when it does not. */
function failureOf(body: Json): string | undefined {
  const failure = isJsonObject(body) ? body['would_fail'] : undefined
  if (!isJsonObject(failure)) return undefined
  const { status, code, detail } = failure
  const parts = [status, code, detail].filter((each) => typeof each === 'string' || typeof each === 'number')
  return parts.join(', ') || 'no reason is given'
}

/** The bytes of an answer that is no problem, for `--output`. */
function contentOf({ status, reply, bytes }: Page): Pick<Bill, 'content'> {
  if (!isAnswered(status)) return {}
  return { content: { bytes, mediaType: reply.headers.get('content-type') ?? 'application/octet-stream' } }
}

function billOf(offer: Offer, settled: Settled<Page>, steps: Steps): Bill {
  const { answer, charged, amount, transaction, usage } = settled
  const payment = answer?.reply.headers.get('ratecard-payment') ?? undefined
  const { status = 0, body = null } = answer ?? {}
  const receipts = answer === undefined ? undefined : readSignedReceipts(answer.reply)
  const bill = { status, charged, offer, amount, usage, payment, receipts, body }
  if (answer === undefined || (charged === 'unknown' && !isAnswered(status)))
    return { ...bill, exit: UNKNOWN, note: 'the outcome is not known: ask again with the same payment' }
  if (isEarlier(answer.reply))
    steps.tell(`bought before with ${payment ?? 'another payment'}: this one was not used and is not charged`)
  else if (transaction !== undefined)
    steps.tell(`${offer.channel === undefined ? 'settled' : 'deposited'} in ${transaction}`)
  else if (offer.channel !== undefined && charged === 'yes') steps.tell('paid by a voucher')
  else if (amount === 0n && isAnswered(status)) steps.tell('it has used nothing, and costs nothing')
  else if (isAnswered(status)) steps.tell('answered without a receipt')
  if (offer.amountIs === 'ceiling' && charged === 'yes')
    steps.tell(`${formatShort(amount)} of ${formatShort(offer.amount)} USD charged${usageText(usage)}`)
  const failed = charged === 'no' ? NOT_CHARGED : UNKNOWN
  return { ...bill, exit: isAnswered(status) ? 0 : failed, transaction, ...contentOf(answer) }
}
