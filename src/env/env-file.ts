import { existsSync, readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import type { Variables } from './reader.ts'

/** Variables of a file in the form of dotenv, with or without a byte order mark; none when there is no such file. */
export function readEnvFile(path: string): Variables {
  return existsSync(path) ? parseEnv(readFileSync(path, 'utf8').replace(/^\uFEFF/, '')) : {}
}
