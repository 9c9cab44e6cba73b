import { hash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { isCustomerName, readApiKey } from '../engine/catalog/api-keys.ts'
import { parse } from '../engine/catalog/parse.ts'
import { systemRuntime } from '../engine/base/runtime.ts'
import { countOf } from '../engine/base/words.ts'
import { replaceFile } from './new-files.ts'
import type { Call } from './command.ts'
import { columns } from './terminal-text.ts'

const NEW_FILE = `# SHA-256 digests of API keys, one per line with the name of its customer.
# "ratecard keys new NAME" adds a key, "ratecard keys revoke NAME" removes those of a customer.
`

/** Makes a key of 256 random bits, shows it once, and adds its digest to the file. */
export async function newKey(call: Call): Promise<number> {
  const { positionals, flags, terminal } = call
  const [name = ''] = positionals
  if (!isCustomerName(name))
    return refuse(call, `"${name}" is no name: letters, digits and . _ @ -, at most 64`)
  const file = fileOf(call)
  if (file === undefined) return refuse(call, NO_FILE)
  const key = `rk_${Buffer.from(systemRuntime.random(32)).toString('base64url')}`
  const known = existsSync(file) ? readFileSync(file, 'utf8') : NEW_FILE
  const start = known === '' || known.endsWith('\n') ? known : `${known}\n`
  const digest = hash('sha256', key, 'hex')
  replaceFile(file, `${start}${digest} ${name}\n`)
  terminal.out(flags.given('json') ? JSON.stringify({ name, key, digest, file }, undefined, 2) : key)
  terminal.err(
    `This key of ${name} is not shown again. ${file} has its digest; a running server takes it now.`,
  )
  return 0
}

/** Removes the keys of one customer. */
export async function revokeKeys(call: Call): Promise<number> {
  const { positionals, flags, terminal } = call
  const [name = ''] = positionals
  const file = fileOf(call)
  if (file === undefined) return refuse(call, NO_FILE)
  const lines = linesOf(file)
  const kept = lines.filter((line) => readApiKey(line)?.name !== name)
  const count = lines.length - kept.length
  if (count === 0) return refuse(call, `${file} has no key of ${name}`)
  replaceFile(file, kept.join('\n'))
  if (flags.given('json')) terminal.out(JSON.stringify({ name, revoked: count, file }, undefined, 2))
  else terminal.out(`${countOf(count, 'key')} of ${name} removed from ${file}`)
  return 0
}

/** Lists the customers. */
export async function listKeys(call: Call): Promise<number> {
  const { flags, terminal } = call
  const file = fileOf(call)
  if (file === undefined) return refuse(call, NO_FILE)
  const keys = linesOf(file).flatMap((line) => readApiKey(line) ?? [])
  if (flags.given('json')) terminal.out(JSON.stringify(keys, undefined, 2))
  else if (keys.length === 0) terminal.err(`${file} has no keys`)
  else terminal.out(columns(keys.map(({ name, digest }) => [name, digest.slice(0, 12)])))
  return 0
}

const NO_FILE = 'the catalog has no file of keys: write "access: { api_keys: { file: ./keys.txt } }" into it'

/** The file that the catalog names; the rest of the catalog may have errors. */
function fileOf({ flags, env }: Call): string | undefined {
  const catalog = flags.text('catalog') ?? env.catalog
  const { document } = parse(readFileSync(catalog, 'utf8'))
  const path = document.spelling(['access', 'api_keys', 'file'])
  return path === undefined ? undefined : resolve(dirname(catalog), path)
}

function linesOf(file: string): string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
}

function refuse({ terminal }: Call, reason: string): number {
  terminal.err(`ratecard keys: ${reason}`)
  return 1
}
