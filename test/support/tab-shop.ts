import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { signVoucher } from '../fixtures/toy-scheme/tab.ts'
import { listening } from './http.ts'

const TSX = fileURLToPath(new URL('tsx.mjs', import.meta.url))

/** The network of the toy scheme: takes claims, and is told of each run of a handler. */
export async function openBank(t: Test) {
  const bank = { runs: 0, claims: new Map<string, string>(), hold: undefined as Promise<void> | undefined }
  const server = createServer((request, response) => {
    void text(request).then(async (body) => {
      if (request.url === '/work') {
        bank.runs += 1
        const run = bank.runs
        await bank.hold
        return response.end(String(run))
      }
      const { payer, total } = JSON.parse(body) as { payer: string; total: string }
      bank.claims.set(payer, total)
      return response.end()
    })
  })
  const { url, close } = await listening(server)
  t.teardown(close)
  return Object.assign(bank, { url })
}

export interface TabShop {
  url: string
  /** What it has written for its operator. */
  readonly log: () => string
  kill(): Promise<void>
  restart(): Promise<void>
}

/** A shop of `test/fixtures` in a process of its own. */
export async function openTabShop(t: Test, fixture: string, bank: string): Promise<TabShop> {
  const dataDir = mkdtempSync(join(tmpdir(), 'ratecard-tabs-'))
  const file = fileURLToPath(new URL(`../fixtures/${fixture}`, import.meta.url))
  let child: ChildProcess
  let log = ''
  const start = async (): Promise<string> => {
    child = spawn(process.execPath, [`--import=${TSX}`, file, JSON.stringify({ bank, dataDir })], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    child.stderr?.on('data', (data) => (log += String(data)))
    const [line] = await Promise.race([
      once(child.stdout ?? child, 'data'),
      once(child, 'exit').then(() => Promise.reject(new Error(`the shop has not started: ${log}`))),
    ])
    child.stdout?.on('data', (data) => (log += String(data)))
    return `http://127.0.0.1:${String(line).trim()}`
  }
  const kill = async (): Promise<void> => {
    const exited = once(child, 'exit')
    if (child.kill('SIGKILL')) await exited
  }
  const shop: TabShop = {
    url: await start(),
    log: () => log,
    kill,
    restart: async () => {
      shop.url = await start()
    },
  }
  t.teardown(async () => {
    await kill()
    rmSync(dataDir, { recursive: true, force: true })
  })
  return shop
}

export interface TabOffer {
  readonly scheme: string
  readonly network: string
  readonly amount: string
}

/** The offers of a 402. */
export function offersOf(response: Response): readonly TabOffer[] {
  const header = Buffer.from(response.headers.get('payment-required') ?? '', 'base64').toString('utf8')
  const { accepts }: { readonly accepts: readonly TabOffer[] } = JSON.parse(header)
  return accepts
}

/** A payment by a payer whose tab was charged `base` before; `ceiling`: what it authorizes. */
export function tabPayment(
  resource: string,
  accepted: TabOffer,
  { payer, base = '0', ceiling = accepted.amount }: { payer: string; base?: string; ceiling?: string },
): string {
  const payload = signVoucher({
    type: 'voucher',
    payer,
    base,
    ceiling,
    validBefore: Date.now() + 3_600_000,
  })
  const value = { x402Version: 2, resource: { url: resource }, accepted, payload }
  return Buffer.from(JSON.stringify(value)).toString('base64')
}
