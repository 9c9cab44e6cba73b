import type { Server } from 'node:http'
import { listen, openLmdbLedger, type Ledger } from '../engine/index.ts'

/** Listens, or throws a sentence that says what to do about it. */
export async function openPort(server: Server, port: number, host: string): Promise<number> {
  try {
    return await listen(server, port, host)
  } catch (cause) {
    throw new Error(portSentence(codeOf(cause), port, host), { cause })
  }
}

function portSentence(code: string, port: number, host: string): string {
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} is in use: stop what listens there, or choose another with --port`
    case 'EACCES':
      return `port ${port} needs rights this process does not have: choose one above 1023 with --port`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `HOST ${host} is no address of this machine`
    default:
      return `cannot listen on ${host}:${port} (${code})`
  }
}

/** Opens the ledger, or throws a sentence that names the directory. */
export async function openLedger(directory: string): Promise<Ledger> {
  try {
    return await openLmdbLedger(directory)
  } catch (cause) {
    if (!UNUSABLE.includes(codeOf(cause))) throw cause
    const sentence = `the data directory cannot be used: ${directory} cannot be written (${codeOf(cause)}); choose another with --data-dir`
    throw new Error(sentence, { cause })
  }
}

const UNUSABLE: readonly string[] = ['EACCES', 'EEXIST', 'ENOSPC', 'ENOTDIR', 'EPERM', 'EROFS']

function codeOf(fault: unknown): string {
  return fault instanceof Error && 'code' in fault && typeof fault.code === 'string' ? fault.code : ''
}
