import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { isJsonObject, type Json, type JsonObject } from '../../src/engine/base/json.ts'
import type { Hex } from './payment.ts'
import { MAIN, nodeCommand } from './server.ts'

/** The result of a call, taken apart. */
interface Result {
  readonly isError: boolean
  readonly content: JsonObject
  /** All texts of the content. */
  readonly text: string
  readonly meta: JsonObject
  readonly whole: JsonObject
}

export interface BridgeOptions {
  readonly key: Hex
  /** Of the state; a folder of the test otherwise. */
  readonly stateDir?: string
  /** Of the shop, or of one of its MCP servers. */
  readonly url: string
  readonly flags?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Answers the questions to the user; undefined: a client that cannot ask. */
  readonly user?: (message: string) => 'accept' | 'decline'
}

export interface Bridge {
  list(): Promise<JsonObject[]>
  call(name: string, args: JsonObject): Promise<Result>
  /** In the revision of 2026, where every request stands for itself. */
  callModern(name: string, args: JsonObject, more?: JsonObject): Promise<JsonObject>
  kill(): Promise<void>
  close(): Promise<number | null>
  readonly log: () => string
}

/** The built program as a child process, and a client that writes JSON-RPC to it. Every line it prints must be a message. */
export async function openBridge(t: Test, options: BridgeOptions): Promise<Bridge> {
  const { key, stateDir = t.testdirName, url, env = {}, user } = options
  const { flags = ['--max-per-call', '0.02', '--max', '0.05'] } = options
  const child = spawn(...nodeCommand([MAIN, 'mcp', url, '--data-dir', stateDir, ...flags]), {
    cwd: t.testdirName,
    env: { PATH: process.env['PATH'] ?? '', PAYER_PRIVATE_KEY: key, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let log = ''
  child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()))
  const waiting = new Map<Json, (message: JsonObject) => void>()
  const write = (message: JsonObject): boolean =>
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  createInterface(child.stdout).on('line', (line) => {
    const message: unknown = JSON.parse(line)
    if (!isJsonObject(message) || message['jsonrpc'] !== '2.0') throw new Error(`no message: ${line}`)
    const { id, method, params } = message
    if (method === 'elicitation/create' && id !== undefined) {
      const asked = isJsonObject(params) ? textOf(params['message']) : ''
      const action = user?.(asked) ?? 'decline'
      return write({ id, result: action === 'accept' ? { action, content: {} } : { action } })
    }
    if (id !== undefined) waiting.get(id)?.(message)
    return undefined
  })
  const exited = once(child, 'exit')
  let last = 0
  const ask = (method: string, params: JsonObject): Promise<JsonObject> => {
    const id = (last += 1)
    return new Promise((resolve, reject) => {
      waiting.set(id, ({ result, error }) =>
        isJsonObject(result) ? resolve(result) : reject(new Error(JSON.stringify(error))),
      )
      void exited.then(() => reject(new Error(`the proxy has ended: ${log}`)))
      write({ id, method, params })
    })
  }
  t.teardown(() => child.kill('SIGKILL'))
  let opened: Promise<unknown> | undefined
  const open = (): Promise<unknown> =>
    (opened ??= ask('initialize', {
      protocolVersion: '2025-06-18',
      capabilities: user === undefined ? {} : { elicitation: {} },
      clientInfo: { name: 'test', version: '1' },
    }).then(() => write({ method: 'notifications/initialized' })))
  return {
    list: async () => {
      await open()
      const { tools: listed } = await ask('tools/list', {})
      return Array.isArray(listed) ? listed.filter((each) => isJsonObject(each)) : []
    },
    call: async (name, args) => {
      await open()
      return resultOf(await ask('tools/call', { name, arguments: args }))
    },
    callModern: (name, args, more = {}) =>
      ask('tools/call', {
        name,
        arguments: args,
        ...more,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientCapabilities':
            user === undefined ? {} : { elicitation: { form: {} } },
          'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
        },
      }),
    kill: async () => {
      child.kill('SIGKILL')
      await exited
    },
    close: async () => {
      child.stdin.end()
      await exited
      return child.exitCode
    },
    log: () => log,
  }
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

export function resultOf(whole: JsonObject): Result {
  const { structuredContent, content, _meta: meta } = whole
  const blocks = Array.isArray(content) ? content : []
  return {
    isError: whole['isError'] === true,
    content: isJsonObject(structuredContent) ? structuredContent : {},
    text: blocks.map((each) => (isJsonObject(each) ? textOf(each['text']) : '')).join('\n'),
    meta: isJsonObject(meta) ? meta : {},
    whole,
  }
}

/** The record of spending in a state folder. */
export function recordIn(folder: string): string {
  const [file = ''] = readdirSync(join(folder, 'spending')).filter((name) => name.endsWith('.json'))
  return readFileSync(join(folder, 'spending', file), 'utf8')
}
