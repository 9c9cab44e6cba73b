import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { StoresOfService } from '../engine/app/service-stores.ts'
import type { HandlerMap } from '../engine/handler.ts'
import type { Call } from './command.ts'
import { placeOfFault } from './place-of-fault.ts'

/** Limit for loading handlers with their imports. */
const LOAD_MS = 30_000

/**
 * The handlers of the service (or `shipped` in their place), and on top of them the operator's own: from `--handlers
 * DIR`, else from the folder `handlers` next to the catalog, if it has an index.js. Rejects with a sentence when they
 * cannot be loaded.
 */
export async function handlersFor(
  { service, context, flags }: Call,
  catalog: string,
  shipped?: HandlerMap,
): Promise<HandlerMap> {
  const beside = join(dirname(catalog), 'handlers')
  const found = existsSync(join(beside, 'index.js')) ? beside : undefined
  const directory = flags.text('handlers') ?? found
  const known = shipped ?? (await service.handlers({ ...context, stores: new StoresOfService().get }))
  if (directory === undefined && Object.keys(known).length === 0 && existsSync(join(beside, 'index.ts')))
    throw new Error(`${join(beside, 'index.ts')} is not compiled: run "npm run build"`)
  return { ...known, ...(directory === undefined ? {} : await importHandlers(directory)) }
}

/**
 * Imports `handlers` from an operator's own folder: `DIR/index.js`, compiled or written as plain JavaScript. Rejects
 * with a sentence when they are missing, cannot be loaded, or take longer than `loadMs` milliseconds.
 */
export async function importHandlers(directory: string, loadMs = LOAD_MS): Promise<HandlerMap> {
  const file = resolve(directory, 'index.js')
  if (!existsSync(file)) throw new Error(`no such file: ${file}; --handlers names the folder of an index.js`)
  const loaded = await inTime(import(pathToFileURL(file).href), loadMs).catch((cause: unknown) => {
    if (!(cause instanceof Error)) throw new Error(`${file} cannot be loaded: ${String(cause)}`, { cause })
    const place = placeOfFault(cause, directory)
    const reason = `${cause.name}: ${cause.message}${place === undefined ? '' : `, at ${place}`}`
    throw new Error(`${file} cannot be loaded: ${reason}`, { cause })
  })
  if (
    typeof loaded === 'object' &&
    loaded !== null &&
    'handlers' in loaded &&
    isHandlerMap(loaded.handlers)
  ) {
    return loaded.handlers
  }
  throw new Error(
    `${file} exports no "handlers": an object by name of functions, { run } with preview, check or configured, or { prepare, commit, abort }`,
  )
}

/** The timer also keeps a process alive that has nothing else to do yet, so that it can say why it does not start. */
function inTime(loading: Promise<unknown>, ms: number): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const late = new Error(`not loaded after ${ms / 1000} s: a top-level await may wait for what never comes`)
    const timer = setTimeout(() => reject(late), ms)
    void loading.finally(() => clearTimeout(timer)).then(resolve, reject)
  })
}

function isHandlerMap(value: unknown): value is HandlerMap {
  return typeof value === 'object' && value !== null && Object.values(value).every(isHandler)
}

/** Types of what a handler may have besides `run`; one of them is why it is an object. */
const PARTS: Readonly<Record<string, string>> = {
  preview: 'function',
  check: 'function',
  configured: 'boolean',
}

function isHandler(value: unknown): boolean {
  if (typeof value === 'function') return true
  if (typeof value !== 'object' || value === null) return false
  if ('prepare' in value && 'commit' in value && 'abort' in value)
    return [value.prepare, value.commit, value.abort].every((part) => typeof part === 'function')
  if (!('run' in value) || typeof value.run !== 'function') return false
  const parts = Object.entries(value).filter(([name]) => name in PARTS)
  return parts.length > 0 && parts.every(([name, part]) => typeof part === PARTS[name])
}
