import type { Argument } from '../handler.ts'
import { templatesOf, type Binding, type Parameter, type Scalar } from './catalog.ts'
import { compileParameter } from './parameter.ts'
import { toArgument } from './validator.ts'
import type { Declared, DeclaredParameters, DeclaredRoute } from './schema.ts'
import { handlerOf, PROXY, routesOf, type DeclaredPlace } from './check-context.ts'

/** What defines a handler's arguments: the first route that uses it without fixed arguments, otherwise a tool. */
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
  for (const [name, tool] of Object.entries(declared.tools ?? {})) {
    const handler = tool.handler ?? name
    if (!owners.has(handler))
      owners.set(handler, { handler, path: name, parameters: compileSet('', tool.parameters) })
  }
  return owners
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
