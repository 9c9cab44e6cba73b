import { clean } from '../command-line/printable.ts'
import { UsageError } from '../command-line/usage-error.ts'
import { isJsonObject, type JsonObject } from '../engine/base/json.ts'
import { formatPrice, formatShort, toMicros } from '../engine/base/money.ts'
import { spellDuration } from '../engine/base/words.ts'
import { CHANNELS } from '../engine/base/channel-contracts.ts'
import type { BuyerCall } from './buyer-command.ts'
import type { BuyerRuntime } from './buyer-runtime.ts'
import { amountIn } from './channels/channel-file.ts'
import { type ChannelOffer, type Channels, depositOf } from './channels/channels.ts'
import { decodeJson } from './protocols/paying-protocol.ts'
import { x402By } from './protocols/x402.ts'
import { request } from './http-call.ts'
import { channelsOf, findWallet } from './wallet.ts'

/** What became of a channel. */
type Closed =
  | { readonly kind: 'refunded'; readonly amount: bigint; readonly transaction: string }
  | { readonly kind: 'kept'; readonly left: bigint | undefined; readonly reason: string }

/** A refund costs the shop gas: below this part of its smallest deposit it is not asked for. */
const LEAST_SHARE = 10n

/** Asks a shop to give back what is left of the channel with it. Exits 4 when nothing was given back. */
export async function close(call: BuyerCall, runtime: BuyerRuntime): Promise<number> {
  const { positionals, flags, env, terminal } = call
  const [target = ''] = positionals
  const url = URL.canParse(target) ? new URL(target) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new UsageError(`"${target}" is not the URL of a paid route: http://… or https://…`)
  const wallet = findWallet(url, env)
  const stateDir = flags.text('data-dir') ?? env.stateDir
  const channels = wallet && channelsOf(wallet, { shop: url, stateDir, rule: depositOf(undefined) }, runtime)
  if (channels === undefined)
    throw new Error('no wallet: set PAYER_PRIVATE_KEY to the private key of the account that has paid')
  const closed = await closeAt(url, channels)
  if (flags.given('json')) terminal.out(JSON.stringify(rendered(closed)))
  else terminal.out(clean(sentenceOf(closed)))
  return closed.kind === 'refunded' ? 0 : 4
}

async function closeAt(url: URL, channels: Channels): Promise<Closed> {
  const page = { url, method: 'GET', headers: {}, body: undefined }
  const first = await request(page, {})
  const required = first?.reply.headers.get('payment-required')
  const asked = required === null || required === undefined ? undefined : decodeJson(required)
  const offer = first && x402By(['batch-settlement']).readOffers(first.reply)[0]?.channel
  if (offer === undefined || !isJsonObject(asked))
    return { kind: 'kept', left: undefined, reason: `${url.href} has no offer for channels by GET` }
  const accepted = acceptedIn(asked)
  return channels.alone(async () => {
    for (let tries = 1; ; tries += 1) {
      const { state, payload } = await channels.signRefund(offer)
      const left = state.balance - state.charged
      const least = offer.channel.leastDeposit / LEAST_SHARE
      // A file that was lost shows nothing: then the shop is asked.
      if (state.signed > 0n && left < least) return { kind: 'kept', left, reason: tooLittle(offer, least) }
      const { resource } = asked
      const payment = { x402Version: 2, ...(isJsonObject(resource) && { resource }), accepted, payload }
      const header = Buffer.from(JSON.stringify(payment)).toString('base64')
      const answer = await request(page, { 'payment-signature': header })
      if (answer === undefined)
        return { kind: 'kept', left, reason: `${url.origin} does not answer: ask again` }
      const response = decodeJson(answer.reply.headers.get('payment-response') ?? '')
      const refunded = isJsonObject(response) ? refundIn(response) : undefined
      if (refunded !== undefined) {
        channels.noteRefund(offer, refunded.amount)
        return { kind: 'refunded', ...refunded }
      }
      const again = decodeJson(answer.reply.headers.get('payment-required') ?? '')
      const noted = await channels.note(payment, {
        response: undefined,
        required: isJsonObject(again) ? again : undefined,
      })
      if (noted.kind === 'noted' || tries > 1) return { kind: 'kept', left, reason: refusalIn(answer.body) }
    }
  })
}

function acceptedIn({ accepts }: JsonObject): JsonObject {
  const found = Array.isArray(accepts)
    ? accepts.find((each) => isJsonObject(each) && each['scheme'] === 'batch-settlement')
    : undefined
  return isJsonObject(found) ? found : {}
}

function refundIn({ success, amount, transaction }: JsonObject) {
  const sum = amountIn(amount)
  if (success !== true || sum === undefined || typeof transaction !== 'string') return undefined
  return { amount: sum, transaction }
}

function refusalIn(body: unknown): string {
  const detail = isJsonObject(body) ? body['detail'] : undefined
  return typeof detail === 'string' ? `the shop refuses: ${detail}` : 'the shop refuses to give it back'
}

function tooLittle({ network, channel }: ChannelOffer, least: bigint): string {
  return `a refund costs the shop gas, and is not asked for below ${usd(least)} USD. The wallet can take it out by itself: initiateWithdraw of ${CHANNELS} on ${network.title}, and finalizeWithdraw ${spellDuration(channel.withdrawDelay * 1000)} later`
}

function usd(amount: bigint): string {
  return formatShort(toMicros(amount))
}

function rendered(closed: Closed): JsonObject {
  if (closed.kind === 'refunded')
    return { refunded: formatPrice(toMicros(closed.amount)), transaction: closed.transaction }
  const { left, reason } = closed
  return { refunded: null, left: left === undefined ? null : formatPrice(toMicros(left)), reason }
}

function sentenceOf(closed: Closed): string {
  if (closed.kind === 'refunded') return `${usd(closed.amount)} USD came back in ${closed.transaction}`
  const left = closed.left === undefined ? '' : `${usd(closed.left)} USD are left in the channel: `
  return `${left}${closed.reason}`
}
