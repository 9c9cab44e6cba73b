import { homedir } from 'node:os'
import { join } from 'node:path'
import type { Reader } from './reader.ts'

/** The settings that `pay` and `mcp` use. */
export interface BuyerEnv {
  /** Of the sandbox of this folder, which writes down its address and wallet there. */
  readonly dataDir: string
  /** Where a buyer's own state is kept, apart from any project. */
  readonly stateDir: string
  readonly baseUrl: string | undefined
  readonly port: number
  /** RPC endpoints by chain id. */
  readonly rpcUrls: Readonly<Record<number, string>>
  readonly payerKey: `0x${string}` | undefined
}

export function readBuyerEnv(reader: Reader): BuyerEnv {
  return {
    dataDir: reader.text('DATA_DIR') ?? '.ratecard',
    stateDir: join(reader.text('XDG_STATE_HOME') ?? join(homedir(), '.local', 'state'), 'ratecard'),
    baseUrl: reader.origin('BASE_URL'),
    port: reader.port('PORT') ?? 4021,
    rpcUrls: reader.rpcUrls(),
    payerKey: reader.keys('PAYER_PRIVATE_KEY')[0],
  }
}
