import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  createPublicClient,
  createTestClient,
  http,
  parseAbi,
  parseAbiItem,
  publicActions,
  walletActions,
} from 'viem'
import { baseSepolia } from 'viem/chains'
import type { JsonObject } from '../../../src/engine/base/json.ts'
import { onchainClient, type OnchainClient } from '../../support/base-chain.ts'
import { at, items } from '../../support/documents.ts'
import { addressOf, randomKey, type Hex } from '../../support/payment.ts'
import { receiptOf } from '../../support/receipt-of.ts'
import { objectIn, openSandbox, textAt, type ShippedService } from './shipped-service.ts'

/** Mints the test token; the node signs for it. */
const FAUCET = '0x00000000000000000000000000000000000fa0ce'
const WALLET_BALANCE = 10_000_000n
const TRANSFER = parseAbiItem('event Transfer(address indexed from, address indexed to, uint256 amount)')
const TOKEN = parseAbi(['function mint(address to, uint256 amount)'])

/** The shipped service with its MCP servers, on chains of this machine. */
export interface ToolShop {
  readonly service: ShippedService
  readonly onchain: OnchainClient
  readonly tempo: { readonly rpcUrl: string; readonly payerKey: Hex; readonly recipient: Hex }
  /** Amounts received on the chain of MPP, oldest first. */
  received(): Promise<bigint[]>
  /** Address of an MCP server, from the index. */
  serverUrl(name: string): URL
  /** A new wallet with tokens. */
  wallet(): Promise<Hex>
}

export async function openToolShop(t: Parameters<typeof openSandbox>[0]): Promise<ToolShop> {
  const service = await openSandbox(t)
  const { evm, tempo } = readSandbox(service)
  const client = createTestClient({ mode: 'anvil', chain: baseSepolia, transport: http(evm.rpcUrl) })
    .extend(publicActions)
    .extend(walletActions)
  const tempoClient = createPublicClient({ transport: http(tempo.rpcUrl) })
  const index = await service.readJson('/')
  return {
    service,
    onchain: onchainClient(evm),
    tempo,
    received: async () => {
      const logs = await tempoClient.getLogs({
        address: tempo.currency,
        event: TRANSFER,
        args: { to: tempo.recipient },
        fromBlock: 0n,
        strict: true,
      })
      return logs.map(({ args }) => args.amount)
    },
    serverUrl: (name) => {
      const server = items(index['mcp_servers']).find((each) => at(each, 'name') === name)
      return new URL(textAt(at(server, 'url')))
    },
    wallet: async () => {
      const key = randomKey()
      const hash = await client.writeContract({
        account: FAUCET,
        address: evm.asset,
        abi: TOKEN,
        functionName: 'mint',
        args: [addressOf(key), WALLET_BALANCE],
      })
      await receiptOf(client, hash)
      return key
    },
  }
}

function readSandbox({ server }: ShippedService) {
  const { evm, tempo } = objectIn(readFileSync(join(server.dataDir, 'sandbox.json'), 'utf8'))
  return {
    evm: { rpcUrl: textAt(at(evm, 'rpcUrl')), chainId: baseSepolia.id, asset: hexAt(evm, 'asset') },
    tempo: {
      rpcUrl: textAt(at(tempo, 'rpcUrl')),
      payerKey: hexAt(tempo, 'payerKey'),
      recipient: hexAt(tempo, 'recipient'),
      currency: hexAt(tempo, 'currency'),
    },
  }
}

function hexAt(value: JsonObject[string] | undefined, name: string): Hex {
  return `0x${textAt(at(value, name)).slice(2)}`
}
