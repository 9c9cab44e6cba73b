import { toChecksum } from '../../src/engine/base/address.ts'
import { isJsonObject, type Json, type JsonObject } from '../../src/engine/base/json.ts'
import { signDigest } from '../../src/engine/chains/evm/signature.ts'
import type { PurchaseReply } from '../../src/engine/purchase/purchase.ts'
import type { ChannelConfig } from '../../src/engine/base/channel-config.ts'
import {
  channelIdOf,
  depositDigest,
  voucherDigest,
} from '../../src/engine/x402/batch-settlement-evm/typed-data.ts'
import type { SimulatedChain } from './chain.ts'
import { BASE, type Wallet } from './market.ts'
import type { Random } from './random.ts'
import { textOf, type Demand, type SignedPayment } from './sign.ts'

/** In atomic units. */
interface Known {
  readonly charged: bigint
  readonly balance: bigint
  /** What the shop asks of the next deposit, where that is more than usual. */
  readonly least: bigint
}

const NOTHING: Known = { charged: 0n, balance: 0n, least: 0n }

/**
 * A buyer’s side of its channel, as the client of the x402 SDK has it: it knows what it was told last, and signs for the
 * next call what follows from that.
 */
export class Channel {
  readonly #chain: SimulatedChain
  readonly #wallet: Wallet
  /** Signs vouchers: the payer, or a key of its own. */
  readonly #authorizer: Wallet
  readonly #salt: `0x${string}`
  readonly #configs = new Map<string, ChannelConfig>()
  readonly #known = new Map<string, Known>()

  constructor(chain: SimulatedChain, wallet: Wallet, authorizer: Wallet, salt: `0x${string}`) {
    this.#chain = chain
    this.#wallet = wallet
    this.#authorizer = authorizer
    this.#salt = salt
  }

  /** By id: another one for each set of terms. */
  get configs(): ReadonlyMap<string, ChannelConfig> {
    return this.#configs
  }

  /** A voucher for the next call, with a deposit when the channel does not hold enough for it. */
  sign(demand: Demand, random: Random, now: number): SignedPayment {
    const { config, id } = this.#open(demand)
    const { charged, balance } = this.#known.get(id) ?? NOTHING
    const ceiling = charged + demand.amount
    const voucher = this.#voucher(id, ceiling)
    const type = ceiling <= balance ? 'voucher' : 'deposit'
    const payload: JsonObject = {
      type,
      channelConfig: { ...config },
      voucher,
      ...(type === 'deposit' && { deposit: this.#deposit(config, id, demand, random, now) }),
    }
    return {
      header: demand.header(payload),
      key: undefined,
      nonce: '',
      name: `${type} of ${id.slice(2, 8)} up to ${ceiling}`,
    }
  }

  /** Asks for what is left; undefined when nothing was bought. */
  signRefund(demand: Demand): string | undefined {
    const { config, id } = this.#open(demand)
    const { charged, balance } = this.#known.get(id) ?? NOTHING
    if (balance === 0n) return undefined
    const voucher = this.#voucher(id, charged)
    return demand.header({ type: 'refund', channelConfig: { ...config }, voucher })
  }

  /** Takes what an answer says of the channel, or a 402 that corrects what was known. */
  learn(reply: PurchaseReply): 'corrected' | 'as before' {
    if (reply.kind === 'answered') this.#take(reply.receipt.extra?.['channelState'])
    if (reply.kind !== 'offer' || reply.refusal.reoffer === undefined) return 'as before'
    const { channelState, minDeposit = '0' } = reply.refusal.reoffer.extra
    this.#take(channelState, BigInt(textOf(minDeposit)))
    return 'corrected'
  }

  /** Takes what the result of a refund says. */
  learnRefund({ extra }: JsonObject): void {
    if (isJsonObject(extra)) this.#take(extra['channelState'])
  }

  #take(state: Json | undefined, least = 0n): void {
    if (!isJsonObject(state)) return
    const charged = BigInt(textOf(state['chargedCumulativeAmount']))
    const balance = BigInt(textOf(state['balance']))
    this.#known.set(textOf(state['channelId']), { charged, balance, least })
  }

  #open({ accepted }: Demand): { readonly config: ChannelConfig; readonly id: `0x${string}` } {
    const extra = isJsonObject(accepted['extra']) ? accepted['extra'] : {}
    const config: ChannelConfig = {
      payer: this.#wallet.address,
      payerAuthorizer: this.#authorizer.address,
      receiver: toChecksum(textOf(accepted['payTo'])),
      receiverAuthorizer: toChecksum(textOf(extra['receiverAuthorizer'])),
      token: toChecksum(textOf(accepted['asset'])),
      withdrawDelay: Number(extra['withdrawDelay']),
      salt: this.#salt,
    }
    const id = channelIdOf(config, BASE.chainId)
    this.#configs.set(id, config)
    return { config, id }
  }

  #voucher(channelId: `0x${string}`, ceiling: bigint): JsonObject {
    const signature = signDigest(this.#authorizer.key, voucherDigest(channelId, ceiling, BASE.chainId))
    return { channelId, maxClaimableAmount: ceiling.toString(), signature }
  }

  #deposit(
    config: ChannelConfig,
    id: `0x${string}`,
    { accepted, seconds }: Demand,
    random: Random,
    now: number,
  ): JsonObject {
    const extra = isJsonObject(accepted['extra']) ? accepted['extra'] : {}
    const [usual, asked] = [BigInt(textOf(extra['minDeposit'])), this.#known.get(id)?.least ?? 0n]
    const least = asked > usual ? asked : usual
    const amount = (least * BigInt(random.between(1, 4))).toString()
    const validBefore = String(Math.floor(now / 1000) + seconds)
    const salt = random.hex(32)
    const unsigned = { amount, validAfter: '0', validBefore, salt, signature: salt }
    const signature = signDigest(this.#wallet.key, depositDigest(BASE, config, id, unsigned))
    this.#chain.contracts.know(`deposit ${id} ${amount} 0 ${validBefore} ${salt}`, signature)
    const erc3009Authorization = { validAfter: '0', validBefore, salt, signature }
    return { amount, authorization: { erc3009Authorization } }
  }
}
