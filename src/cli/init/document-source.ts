import { readFileSync, realpathSync } from 'node:fs'
import { dirname, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { UsageError } from '../../command-line/usage-error.ts'
import type { ReadFile } from './reference-files.ts'
import { type DocumentSource, readText } from './read-openapi.ts'

/** Bytes of a document with all of its files. */
const LARGEST_DOCUMENT = 64_000_000

/**
 * A document at a path or an address. Files that it refers to are read from its folder, or from its host. Rejects with
 * a sentence when it cannot be read.
 */
export async function openDocument(source: string): Promise<DocumentSource> {
  if (!/^https?:\/\//.test(source)) return openFile(source)
  const got = await get(source, 'follow')
  if (got.kind === 'unreachable') throw new Error(`${source} cannot be reached`, { cause: got.cause })
  if (got.kind === 'status') throw new UsageError(`${source} answers with status ${got.status}`)
  const { text, address } = got
  if (text.length > LARGEST_DOCUMENT) throw new UsageError(`${source} is larger than 64 MB`)
  const home = new URL(address)
  home.hash = ''
  return { text, home, read: limited(text.length, (other) => readAddress(other, home)) }
}

function openFile(path: string): DocumentSource {
  const text = readFileSync(path, 'utf8')
  const home = pathToFileURL(realpathSync(path))
  return { text, home, read: limited(text.length, (other) => Promise.resolve(readBeside(other, home))) }
}

type ReadSource =
  { readonly kind: 'text'; readonly text: string } | Extract<ReadFile, { readonly kind: 'fault' }>

/** Reads files until all of them together are too large. */
function limited(first: number, read: (address: URL) => Promise<ReadSource>): DocumentSource['read'] {
  let size = first
  return async (address) => {
    const found = await read(address)
    if (found.kind === 'fault') return found
    size += found.text.length
    if (size > LARGEST_DOCUMENT) return { kind: 'fault', reason: 'makes the document larger than 64 MB' }
    const value = readText(found.text)
    return value === undefined
      ? { kind: 'fault', reason: 'is neither JSON nor YAML' }
      : { kind: 'read', value }
  }
}

function fault(reason: string): ReadSource {
  return { kind: 'fault', reason }
}

function readBeside(address: URL, home: URL): ReadSource {
  if (address.protocol !== 'file:') return fault('is not a file in the folder of the document')
  const folder = dirname(fileURLToPath(home))
  try {
    // A link could lead out of the folder.
    const path = realpathSync(fileURLToPath(address))
    if (!path.startsWith(folder.endsWith(sep) ? folder : folder + sep))
      return fault('is outside the folder of the document')
    return { kind: 'text', text: readFileSync(path, 'utf8') }
  } catch {
    return fault('is not there or cannot be read')
  }
}

async function readAddress(address: URL, home: URL): Promise<ReadSource> {
  if (address.origin !== home.origin) return fault('is not on the host of the document')
  const got = await get(address.href, 'manual')
  if (got.kind === 'unreachable') return fault('cannot be reached')
  return got.kind === 'text' ? got : fault(`answers with status ${got.status}`)
}

type Got =
  | { readonly kind: 'text'; readonly text: string; readonly address: string }
  | { readonly kind: 'status'; readonly status: number }
  | { readonly kind: 'unreachable'; readonly cause: unknown }

async function get(address: string, redirect: 'follow' | 'manual'): Promise<Got> {
  try {
    const response = await fetch(address, { redirect, signal: AbortSignal.timeout(30_000) })
    if (!response.ok) {
      await response.body?.cancel()
      return { kind: 'status', status: response.status }
    }
    return { kind: 'text', text: await response.text(), address: response.url }
  } catch (cause) {
    return { kind: 'unreachable', cause }
  }
}
