import { Mppx, tempo } from 'mppx/server'
import { createServer, type IncomingMessage } from 'node:http'
import { createClient, http } from 'viem'
import { privateKeyToAccount } from 'viem/accounts'
import { tempo as tempoChain } from 'viem/tempo/chains'
import type { TempoChain } from '../../src/sandbox/tempo/chain.ts'
import { listening } from './listening.ts'
import { addressOf, randomKey, type Hex } from './payment.ts'

/** A seller that speaks MPP by `mppx/server` as it comes from the registry, 0.005 USD a call, on a real chain. */
export interface MppxShop {
  readonly url: string
  readonly recipient: Hex
  /** Authorization headers received so far. */
  readonly credentials: readonly string[]
  readonly close: () => Promise<void>
}

/** How a test changes an answer, by the number of credentials received; undefined cuts the connection. */
export type Spoil = (response: Response, credentials: number) => Response | undefined

export interface MppxShopOptions {
  readonly spoil?: Spoil
  /** Pays the network’s fee in the payer’s place. */
  readonly sponsorKey?: Hex
}

export async function openMppxShop(
  { rpcUrl, chainId, currency }: Pick<TempoChain, 'rpcUrl' | 'chainId' | 'currency'>,
  { spoil = (response) => response, sponsorKey }: MppxShopOptions = {},
): Promise<MppxShop> {
  const recipient = addressOf(randomKey())
  const chain = { ...tempoChain, id: chainId, rpcUrls: { default: { http: [rpcUrl] } } }
  const client = createClient({ chain, transport: http(rpcUrl, { retryCount: 0 }) })
  const method = tempo.charge({
    currency,
    recipient,
    chainId,
    supportedModes: ['pull'],
    getClient: () => client,
    ...(sponsorKey === undefined ? {} : { feePayer: privateKeyToAccount(sponsorKey) }),
  })
  const mppx = Mppx.create({ realm: 'shop.test', secretKey: randomKey(), methods: [method] })
  const charge = mppx.charge({ amount: '0.005', description: 'one "quote", or two', scope: 'quote' })
  const credentials: string[] = []
  const answer = async (incoming: IncomingMessage): Promise<Response | undefined> => {
    const { authorization } = incoming.headers
    if (authorization !== undefined) credentials.push(authorization)
    const headers = authorization === undefined ? {} : { authorization }
    const result = await charge(new Request(`http://shop.test${incoming.url ?? '/'}`, { headers }))
    const response =
      result.status === 402 ? result.challenge : result.withReceipt(Response.json({ sold: true }))
    return spoil(response, credentials.length)
  }
  const { url, close } = await listening(
    createServer((incoming, outgoing) => {
      answer(incoming).then(
        async (response) => {
          if (response === undefined) return incoming.socket.destroy()
          const headers = Object.fromEntries(response.headers)
          return outgoing.writeHead(response.status, headers).end(await response.text())
        },
        () => incoming.socket.destroy(),
      )
    }),
  )
  return { url, recipient, credentials, close }
}
