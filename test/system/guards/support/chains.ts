import { createPublicClient, http, parseAbiItem } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { Actions } from 'viem/tempo'
import { onchainClient, startBase, type OnchainClient } from '../../../support/base-chain.ts'
import { addressOf, randomKey, type Hex } from '../../../support/payment.ts'
import {
  ALPHA_USD,
  clientOf,
  PATH_USD,
  startTempo,
  TEMPO_CHAIN,
  type TempoChain,
} from '../../../support/tempo.ts'

/** What one payer has paid to one payee, by the Transfer logs of the chain. */
export interface Charged {
  readonly transfers: number
  /** Atomic units. */
  readonly amount: string
}

/** Two local chains, each with a payee. */
export interface Chains {
  readonly base: TestChain
  readonly tempo: TestChain & { readonly chain: TempoChain }
  /** What third parties can do to authorizations on Base. */
  readonly onchain: Pick<OnchainClient, 'submit' | 'cancel' | 'approvePermit2'>
  /** A key with gas for settlements on Base. */
  signer(): Promise<Hex>
  readonly close: () => Promise<void>
}

interface TestChain {
  readonly rpcUrl: string
  readonly payee: Hex
  /** Creates a wallet with tokens. */
  wallet(): Promise<Hex>
  charged(payer: string): Promise<Charged>
  /** Moves all tokens out of a wallet. */
  drain(key: Hex): Promise<void>
}

export type ChainName = 'base' | 'tempo'

const WALLET_BALANCE = 100_000_000n
const SINK = '0x00000000000000000000000000000000000051cc'
const TRANSFER = parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 value)')

export async function startChains(): Promise<Chains> {
  const [base, tempo] = await Promise.all([startBase(), startTempo()])
  const [payTo, recipient] = [addressOf(randomKey()), addressOf(randomKey())]
  const onchain = onchainClient(base)
  // Accounts of the node assign their nonces one after the other.
  let last: Promise<unknown> = Promise.resolve()
  const serially = <T>(work: () => Promise<T>): Promise<T> => {
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
        await serially(() => base.mint(addressOf(key), WALLET_BALANCE))
        return key
      },
      charged: (payer) => chargedOn(base.rpcUrl, base.asset, payer, payTo),
      drain: (key) => serially(() => onchain.drain(addressOf(key), SINK, WALLET_BALANCE)),
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
          amount: WALLET_BALANCE,
          feeToken: ALPHA_USD,
        })
      },
    },
    onchain: {
      submit: (payment) => serially(() => onchain.submit(payment)),
      approvePermit2: (owner, value) => serially(() => onchain.approvePermit2(owner, value)),
      cancel: (key, nonce) => serially(() => onchain.cancel(key, nonce)),
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

export async function chargedOn(rpcUrl: string, token: Hex, from: string, to: Hex): Promise<Charged> {
  const client = createPublicClient({ transport: http(rpcUrl) })
  const args = { from: `0x${from.slice(2)}`, to } as const
  const logs = await client.getLogs({ address: token, event: TRANSFER, args, fromBlock: 0n, strict: true })
  return {
    transfers: logs.length,
    amount: logs.reduce((sum, { args: { value } }) => sum + value, 0n).toString(),
  }
}

/** Environment variables of a server that is paid on both chains, through these RPC endpoints. */
export function payableEnv(
  { base, tempo }: Chains,
  rpcUrls: Readonly<Record<ChainName, string>>,
  signerKeys: readonly Hex[],
  secret: string,
): Record<string, string> {
  return {
    HOST: '127.0.0.1',
    BASE_URL: BASE_URL,
    PAY_TO: base.payee,
    SETTLER_PRIVATE_KEY: signerKeys.join(','),
    RPC_URL_8453: rpcUrls.base,
    MPP_RECIPIENT: tempo.payee,
    MPP_SECRET_KEY: secret,
    [`RPC_URL_${TEMPO_CHAIN}`]: rpcUrls.tempo,
  }
}

export const BASE_URL = 'https://api.example.com'
