import { homedir } from 'node:os'
import { join } from 'node:path'
import { SETTINGS } from '../settings.ts'
import type { Reader } from './reader.ts'

/** The settings that `pay` and `mcp` use. */
export interface BuyerEnv {
  /** Data directory of the sandbox of this folder, which writes its address and wallet there. */
  readonly dataDir: string
  /** Where a buyer's own state is kept, apart from any project. */
  readonly stateDir: string
  readonly baseUrl: string | undefined
  readonly port: number
  /** RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  /** RPC endpoints of Solana by the nickname of the network. */
  readonly svmRpcUrls: Readonly<Record<string, string>>
  readonly payerKey: `0x${string}` | undefined
  /** A key pair of Solana, in base58 or as a JSON array. */
  readonly svmPayerKey: string | undefined
}

export function readBuyerEnv(reader: Reader): BuyerEnv {
  const { dataDir, stateHome, baseUrl, port, payerKey, svmPayerKey } = SETTINGS
  return {
    dataDir: reader.text(dataDir.variable) ?? dataDir.default,
    stateDir: join(reader.text(stateHome.variable) ?? join(homedir(), '.local', 'state'), 'ratecard'),
    baseUrl: reader.origin(baseUrl.variable),
    port: reader.port(port.variable) ?? port.default,
    rpcUrls: reader.rpcUrls(),
    svmRpcUrls: reader.svmRpcUrls(),
    payerKey: reader.keys(payerKey.variable)[0],
    svmPayerKey: reader.text(svmPayerKey.variable),
  }
}
