import type { Server } from 'node:http'
import { listen } from '../engine/index.ts'

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

function codeOf(fault: unknown): string {
  return fault instanceof Error && 'code' in fault && typeof fault.code === 'string' ? fault.code : ''
}
