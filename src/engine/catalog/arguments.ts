import type { Argument } from '../handler.ts'
import { templatesOf, type Binding, type Parameter, type Scalar } from './catalog.ts'
import { isNearly, suggest } from './issue.ts'
import { compileParameter } from './parameter.ts'
import { toArgument } from './validator.ts'
import type { Declared, DeclaredParameters, DeclaredRoute } from './schema.ts'
import { handlerOf, PROXY, routesOf, type DeclaredPlace } from './check-context.ts'

/**
 * The arguments of a handler: those that its routes and tools declare together. `path` declares the first ones: the first
 * route that uses the handler without fixed arguments, otherwise a tool.
 */
export interface Owner {
  readonly handler: string
  readonly path: string
  readonly parameters: readonly Parameter[]
}

/** The parameters of one endpoint, then the properties of its body. */
export function compileSet(
  path: string,
  set: DeclaredParameters | undefined,
  body?: DeclaredRoute['body'],
): Parameter[] {
  const templates = templatesOf(path)
  return [
    ...Object.entries(set ?? {}).map(([name, declared]) =>
      compileParameter(name, templates.includes(name) ? 'path' : 'query', declared),
    ),
    ...Object.entries(body?.properties ?? {}).map(([name, declared]) =>
      compileParameter(name, 'body', declared),
    ),
  ]
}

/** The arguments of a handler whose first declaration is this route. */
export function ownDeclaration(place: DeclaredPlace): Owner {
  const { path, route } = place
  const parameters = withFixed(compileSet(path, route.parameters, route.body), route.with)
  return { handler: handlerOf(place), path, parameters }
}

/** The declaration of each handler's arguments. A proxy accepts what its own route declares, so it has none. */
export function ownersOf(declared: Declared): ReadonlyMap<string, Owner> {
  const owners = new Map<string, Owner>()
  const places = routesOf(declared)
  const inOrder = [...places.filter(({ route }) => route.with === undefined), ...places]
  for (const place of inOrder) {
    const handler = handlerOf(place)
    if (handler === PROXY || owners.has(handler)) continue
    owners.set(handler, ownDeclaration(place))
  }
  const tools = Object.entries(declared.tools ?? {}).map(([name, tool]) => ({
    handler: tool.handler ?? name,
    path: name,
    parameters: compileSet('', tool.parameters),
  }))
  for (const tool of tools) if (!owners.has(tool.handler)) owners.set(tool.handler, tool)
  const extend = (handler: string, own: readonly Parameter[], given: DeclaredRoute['with']): void => {
    const owner = owners.get(handler)
    if (owner !== undefined) owners.set(handler, withOthers(owner, own, given))
  }
  for (const place of places) {
    const { path, route } = place
    extend(handlerOf(place), compileSet(path, route.parameters, route.body), route.with)
  }
  for (const { handler, parameters } of tools) extend(handler, parameters, undefined)
  return owners
}

/**
 * Adds what another route or tool of the handler declares. An argument that it does not pass is optional. A name that is
 * nearly that of an argument it does not pass is a mistake and adds none.
 */
function withOthers(owner: Owner, own: readonly Parameter[], given: DeclaredRoute['with'] = {}): Owner {
  const sources = new Set(Object.values(given).map(sourceOf))
  const passed = new Set([...own.map(({ name }) => name), ...Object.keys(given)])
  const known = owner.parameters.map(({ name }) => name)
  const absent = known.filter((name) => !passed.has(name))
  const others = own.filter(
    ({ name }) => !known.includes(name) && !sources.has(name) && !isMistake(name, absent),
  )
  const isOptional = ({ name, required }: Parameter): boolean => required && absent.includes(name)
  if (others.length === 0 && !owner.parameters.some(isOptional)) return owner
  return {
    ...owner,
    parameters: [
      ...owner.parameters.map((each) => (isOptional(each) ? { ...each, required: false } : each)),
      ...others.map((each) => ({ ...each, required: false, default: undefined })),
    ],
  }
}

/** Adds the fixed arguments of a handler that is only used with them. */
function withFixed(
  own: readonly Parameter[],
  given: Readonly<Record<string, Scalar>> | undefined,
): Parameter[] {
  const entries = Object.entries(given ?? {})
  const mapped = new Set(entries.map(([, value]) => sourceOf(value)))
  const fixed = entries.map(([name, value]) => {
    const source = own.find((parameter) => parameter.name === sourceOf(value))
    return source === undefined
      ? compileParameter(name, 'query', { type: typeOf(value) })
      : { ...source, name }
  })
  const names = new Set(fixed.map(({ name }) => name))
  return [...own.filter(({ name }) => !names.has(name) && !mapped.has(name)), ...fixed]
}

function isMistake(name: string, absent: readonly string[]): boolean {
  const suggestion = suggest(name, absent)
  return suggestion !== undefined && isNearly(name, suggestion)
}

function typeOf(value: Scalar): Parameter['type'] {
  if (typeof value === 'string') return 'string'
  if (typeof value === 'boolean') return 'boolean'
  return Number.isInteger(value) ? 'integer' : 'number'
}

/** The parameter that a `$name` refers to; `$$` begins a text that starts with a dollar sign. */
export function sourceOf(value: Scalar): string | undefined {
  return typeof value === 'string' && /^\$[A-Za-z_]/.test(value) ? value.slice(1) : undefined
}

export interface Bound {
  readonly bindings: readonly Binding[]
  /** Required arguments of the handler that the endpoint does not provide. */
  readonly missing: readonly string[]
  /** Parameters that no argument uses. */
  readonly unused: readonly string[]
}

/** Fills the handler’s arguments: from `with`, then from the parameter of the same name, then from the default. */
export function bind(
  owner: Owner,
  parameters: readonly Parameter[],
  given: Readonly<Record<string, Scalar>> | undefined,
): Bound {
  const bindings: Binding[] = []
  const missing: string[] = []
  for (const argument of owner.parameters) {
    const { name } = argument
    const value = given?.[name]
    const source = value === undefined ? undefined : sourceOf(value)
    if (source !== undefined) bindings.push({ kind: 'parameter', argument: name, parameter: source })
    else if (value !== undefined)
      bindings.push({ kind: 'fixed', argument: name, value: fixedValue(argument, value) })
    else if (parameters.some((parameter) => parameter.name === name)) {
      bindings.push({ kind: 'parameter', argument: name, parameter: name })
    } else if (argument.default !== undefined) {
      bindings.push({ kind: 'fixed', argument: name, value: toArgument(argument, argument.default) })
    } else if (argument.required) missing.push(name)
  }
  const used = new Set(bindings.map((binding) => (binding.kind === 'parameter' ? binding.parameter : '')))
  const unused = parameters.map(({ name }) => name).filter((name) => !used.has(name))
  return { bindings, missing, unused }
}

function fixedValue(argument: Parameter, value: Scalar): Argument {
  return toArgument(argument, typeof value === 'string' ? value.replace(/^\$\$/, '$') : value)
}
