import type { Catalog, Parameter } from './catalog.ts'
import { PROXY } from './check-context.ts'

/**
 * The TypeScript a catalog's handlers are checked against: one entry for each handler that is served, with the type of
 * its parameters. Deterministic, so that a build can hold the committed file against it.
 */
export function generateTypes(catalog: Catalog, engine: string): string {
  const handlers = new Map<string, readonly Parameter[]>()
  for (const { handler, parameters, planned } of catalog.operations) {
    if (!planned && handler !== PROXY && !handlers.has(handler)) handlers.set(handler, parameters)
  }
  const objects = [...handlers.values()].flat().some(({ type }) => type === 'object')
  const entries = [...handlers]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, parameters]) => handlerEntry(name, parameters))
  return [
    '// Generated from the catalog by `ratecard types`. Do not edit: change the catalog.',
    'import type {',
    '  ConfigurableHandler as EngineConfigurableHandler,',
    '  Handler as EngineHandler,',
    '  Handlers as EngineHandlers,',
    '  HandlerWithPreview as EngineHandlerWithPreview,',
    ...(objects ? ['  JsonObject,'] : []),
    '  StoringHandler as EngineStoringHandler,',
    `} from '${engine}'`,
    '',
    'export interface Parameters {',
    ...entries,
    '}',
    '',
    'export type Handler<Name extends keyof Parameters> = EngineHandler<Parameters[Name]>',
    'export type HandlerWithPreview<Name extends keyof Parameters> = EngineHandlerWithPreview<Parameters[Name]>',
    'export type ConfigurableHandler<Name extends keyof Parameters> = EngineConfigurableHandler<Parameters[Name]>',
    'export type StoringHandler<Name extends keyof Parameters> = EngineStoringHandler<Parameters[Name]>',
    'export type Handlers = EngineHandlers<Parameters>',
    '',
  ].join('\n')
}

function handlerEntry(name: string, parameters: readonly Parameter[]): string {
  const key = /^[a-z][A-Za-z0-9_]*$/.test(name) ? name : `'${name}'`
  if (parameters.length === 0) return `  readonly ${key}: Record<never, never>`
  const members = parameters.map((parameter) => {
    const given = parameter.required || parameter.default !== undefined
    return `    readonly ${parameter.name}${given ? '' : '?'}: ${typeOf(parameter)}`
  })
  return [`  readonly ${key}: {`, ...members, '  }'].join('\n')
}

function typeOf({ type, list, enum: values }: Parameter): string {
  if (list !== undefined) return list.items === 'integer' ? 'readonly number[]' : 'readonly string[]'
  if (values !== undefined)
    return values.map((value) => (typeof value === 'string' ? `'${value}'` : String(value))).join(' | ')
  if (type === 'object') return 'JsonObject'
  return type === 'integer' ? 'number' : type
}
