import { createPublicClient, http, parseAbiItem } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { Actions } from 'viem/tempo'
import { startBase, witness, type Witness } from '../../support/base-chain.ts'
import { addressOf, randomKey, type Hex } from '../../support/payment.ts'
import {
  ALPHA_USD,
  clientOf,
  PATH_USD,
  startTempo,
  TEMPO_CHAIN,
  type TempoChain,
} from '../../support/tempo.ts'

/** What one payer has paid to one payee, by the Transfer logs of the chain. */
export interface Charged {
  readonly transfers: number
  /** Atomic units. */
  readonly amount: string
}

/** Two chains that are real in everything but their money, each with a payee. */
export interface Chains {
  readonly base: Ledger
  readonly tempo: Ledger & { readonly chain: TempoChain }
  /** What others do to authorizations on Base. */
  readonly witness: Pick<Witness, 'submit' | 'cancel'>
  /** A key with gas for settlements on Base. */
  signer(): Promise<Hex>
  readonly close: () => Promise<void>
}

interface Ledger {
  readonly rpcUrl: string
  readonly payee: Hex
  /** A wallet nobody has used, with tokens. */
  wallet(): Promise<Hex>
  charged(payer: string): Promise<Charged>
  /** Takes all tokens of a wallet away. */
  drain(key: Hex): Promise<void>
}

export type Which = 'base' | 'tempo'

const PURSE = 100_000_000n
const SINK = '0x00000000000000000000000000000000000051cc'
const TRANSFER = parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 value)')

export async function startChains(): Promise<Chains> {
  const [base, tempo] = await Promise.all([startBase(), startTempo()])
  const [payTo, recipient] = [addressOf(randomKey()), addressOf(randomKey())]
  const seen = witness(base)
  // Accounts of the node take their nonces one after the other.
  let last: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const done = last.then(work)
    last = done.catch(() => undefined)
    return done
  }
  return {
    base: {
      rpcUrl: base.rpcUrl,
      payee: payTo,
      wallet: async () => {
        const key = randomKey()
        await inTurn(() => base.mint(addressOf(key), PURSE))
        return key
      },
      charged: (payer) => chargedOn(base.rpcUrl, base.asset, payer, payTo),
      drain: (key) => inTurn(() => seen.drain(addressOf(key), SINK, PURSE)),
    },
    tempo: {
      chain: tempo,
      rpcUrl: tempo.rpcUrl,
      payee: recipient,
      wallet: () => tempo.wallet(),
      charged: (payer) => chargedOn(tempo.rpcUrl, PATH_USD, payer, recipient),
      drain: async (key) => {
        const client = clientOf(tempo.rpcUrl, privateKeyToAccount(key))
        await Actions.token.transferSync(client, {
          token: PATH_USD,
          to: SINK,
          amount: PURSE,
          feeToken: ALPHA_USD,
        })
      },
    },
    witness: {
      submit: (payment) => inTurn(() => seen.submit(payment)),
      cancel: (key, nonce) => inTurn(() => seen.cancel(key, nonce)),
    },
    signer: async () => {
      const key = randomKey()
      await base.setGas(addressOf(key), 10n ** 18n)
      return key
    },
    close: async () => {
      await Promise.all([base.stop(), tempo.stop()])
    },
  }
}

async function chargedOn(rpcUrl: string, token: Hex, from: string, to: Hex): Promise<Charged> {
  const client = createPublicClient({ transport: http(rpcUrl) })
  const args = { from: `0x${from.slice(2)}`, to } as const
  const logs = await client.getLogs({ address: token, event: TRANSFER, args, fromBlock: 0n, strict: true })
  return {
    transfers: logs.length,
    amount: logs.reduce((sum, { args: { value } }) => sum + value, 0n).toString(),
  }
}

/** What a server needs to be paid on both chains, by the ways that lead to them. */
export function payableEnv(
  { base, tempo }: Chains,
  ways: Readonly<Record<Which, string>>,
  signerKeys: readonly Hex[],
  secret: string,
): Record<string, string> {
  return {
    HOST: '127.0.0.1',
    BASE_URL: BASE_URL,
    PAY_TO: base.payee,
    SETTLER_PRIVATE_KEY: signerKeys.join(','),
    RPC_URL_8453: ways.base,
    MPP_RECIPIENT: tempo.payee,
    MPP_SECRET_KEY: secret,
    [`RPC_URL_${TEMPO_CHAIN}`]: ways.tempo,
  }
}

export const BASE_URL = 'https://api.example.com'
