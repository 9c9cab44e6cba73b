import { wrapFetchWithPayment, type x402Client } from '@x402/fetch'
import { isJsonObject, type Json, type JsonObject } from '../../../src/engine/base/json.ts'
import type { PaymentRecord } from '../../../src/engine/ledger/payment-record.ts'
import { contractReader, openChannelClient } from '../../support/channels.ts'
import { at } from '../../support/documents.ts'
import { randomKey, type Hex } from '../../support/payment.ts'
import type { Secrets } from '../../support/secrets.ts'
import type { Charge, PaymentMethod } from './payment-method.ts'
import { FIXED_ROUTES, METERED_ROUTES } from './routes.ts'
import type { SeededRandom } from './seeded-random.ts'
import { openX402 } from './x402.ts'

/** Claimed often, so that kills meet claims. */
const TERMS =
  'schemes: [batch-settlement], channels: { withdraw_delay: 1h, least_deposit: 0.3, claim_after: 0.1, claim_every: 5s, most_unclaimed: 5 }'

/** The scheme that pays by vouchers of a channel: one for each buyer, who signs the same voucher until it is answered. */
export async function openChannelMethod(random: SeededRandom, secrets: Secrets): Promise<PaymentMethod> {
  const authorizerKey = randomKey()
  secrets.add('the key of channels', authorizerKey.slice(2))
  const clients = new Map<Hex, x402Client>()
  const method = await openX402(random, secrets, {
    routes: [...FIXED_ROUTES, ...METERED_ROUTES],
    terms: TERMS,
    env: { CHANNEL_AUTHORIZER_KEY: authorizerKey },
    prepare: async () => undefined,
    client: (key, transport, rpcUrl) => {
      const client = clients.get(key) ?? openChannelClient(key, rpcUrl).client
      clients.set(key, client)
      return wrapFetchWithPayment(transport, client) as typeof fetch
    },
    sign: undefined,
    referenceOf: (header) => {
      const payment: Json = JSON.parse(Buffer.from(header, 'base64').toString('utf8'))
      const voucher = at(payment, 'payload', 'voucher')
      return `${textOf(at(voucher, 'channelId'))}:${textOf(at(voucher, 'maxClaimableAmount'))}`
    },
    referenceOfKey,
    charges: ({ rpcUrl, records }) => chargesOf(records, rpcUrl),
    receiptIn: ({ extra }) => (isJsonObject(extra) ? placeIn(extra) : undefined),
    transactionOf: ({ extra = {} }) => placeIn(extra),
  })
  return { ...method, standingOf: async () => 'a charge of a channel has no transaction of its own' }
}

/**
 * The chain shows the sum of a channel only, the ledger each charge: those of the ledger count where their sum is what was
 * claimed, and a difference is a charge without a purchase.
 */
async function chargesOf(records: readonly PaymentRecord[], rpcUrl: string): Promise<Charge[]> {
  const contract = contractReader(rpcUrl)
  const charges: Charge[] = []
  const sums = new Map<Hex, bigint>()
  for (const { key, receipt } of records) {
    if (receipt === undefined) continue
    const reference = referenceOfKey(key)
    const [id] = reference.split(':') as [Hex]
    const amount = BigInt(receipt.amount)
    sums.set(id, (sums.get(id) ?? 0n) + amount)
    charges.push({ reference, transaction: placeIn(receipt.extra ?? {}), amount })
  }
  for (const [id, charged] of sums) {
    const { claimed } = await contract.channel(id)
    if (claimed !== charged)
      charges.push({ reference: id, transaction: 'claimed beyond the ledger', amount: claimed - charged })
  }
  return charges
}

function referenceOfKey(key: string): string {
  const [, id = '', ceiling = ''] = /:channel:([^:]+):([^:]+):/.exec(key) ?? []
  return `${id}:${ceiling}`
}

/** Where a charge has left its channel. */
function placeIn(extra: JsonObject): string {
  const state = extra['channelState']
  return `${textOf(at(state, 'channelId'))}:${textOf(at(state, 'chargedCumulativeAmount'))}`
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}
