import { existsSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { HandlerMap } from '../engine/internal.ts'
import type { Call } from './command.ts'

/**
 * The handlers of the service, and on top of them the operator's own: from `--handlers DIR`, else from the folder `handlers`
 * next to the catalog, if it has an index.js.
 */
export async function handlersFor(
  { service, context, flags }: Call,
  catalog: string,
  standIns?: HandlerMap,
): Promise<HandlerMap> {
  const beside = join(dirname(catalog), 'handlers')
  const found = existsSync(join(beside, 'index.js')) ? beside : undefined
  const directory = flags.text('handlers') ?? found
  const own = directory === undefined ? {} : await importHandlers(directory)
  return { ...(standIns ?? (await service.handlers(context))), ...own }
}

/** Imports `handlers` from an operator's own folder: `DIR/index.js`, compiled or written as plain JavaScript. */
export async function importHandlers(directory: string): Promise<HandlerMap> {
  const file = resolve(directory, 'index.js')
  if (!existsSync(file)) throw new Error(`no such file: ${file}; --handlers names the folder of an index.js`)
  const loaded = await load(file)
  if (
    typeof loaded === 'object' &&
    loaded !== null &&
    'handlers' in loaded &&
    isHandlerMap(loaded.handlers)
  ) {
    return loaded.handlers
  }
  throw new Error(
    `${file} exports no "handlers": an object of functions (or { run, preview }, { run, configured }) by name`,
  )
}

async function load(file: string): Promise<unknown> {
  try {
    return await import(pathToFileURL(file).href)
  } catch (cause) {
    const reason = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause)
    throw new Error(`${file} cannot be loaded: ${reason}`, { cause })
  }
}

function isHandlerMap(value: unknown): value is HandlerMap {
  return typeof value === 'object' && value !== null && Object.values(value).every(isHandler)
}

function isHandler(value: unknown): boolean {
  if (typeof value === 'function') return true
  if (typeof value !== 'object' || value === null) return false
  if ('prepare' in value && 'commit' in value && 'abort' in value)
    return [value.prepare, value.commit, value.abort].every((part) => typeof part === 'function')
  if (!('run' in value) || typeof value.run !== 'function') return false
  if ('preview' in value) return typeof value.preview === 'function'
  return 'configured' in value && typeof value.configured === 'boolean'
}
