import { bind, compileSet, ownDeclaration, type Owner, ownersOf, sourceOf } from '../arguments.ts'
import { type Parameter, type Scalar, templatesOf } from '../catalog.ts'
import {
  type CheckContext,
  type DeclaredPlace,
  handlerOf,
  PROXY,
  routesOf,
  samplePath,
} from '../check-context.ts'
import { didYouMean, error, type Issue, type Position, suggest, warning } from '../issue.ts'
import { isPassable } from '../parameter.ts'
import type { Path } from '../yaml-document.ts'
import { misfit } from './check-parameters.ts'

/** Checks that every route has a handler, and that every endpoint provides the handler's arguments. */
export function* checkHandlers(context: CheckContext): Generator<Issue> {
  const { declared } = context
  const owners = ownersOf(declared)
  for (const place of routesOf(declared)) {
    yield* checkHandler(context, place)
    yield* checkEndpoints(context, place, owners.get(handlerOf(place)) ?? ownDeclaration(place))
  }
  for (const [name, tool] of Object.entries(declared.tools ?? {})) {
    const [at, handler] = [['tools', name], tool.handler ?? name]
    const owner = owners.get(handler)
    if (tool.planned !== true) yield* checkName(context, handler, at)
    const endpoint = { parameters: compileSet('', tool.parameters), given: {}, at }
    if (owner !== undefined) yield* checkEndpoint(context, endpoint, owner)
  }
}

function* checkHandler(context: CheckContext, place: DeclaredPlace): Generator<Issue> {
  const { route, path, at } = place
  const { document } = context
  const handler = handlerOf(place)
  if (route.planned === true || handler === PROXY) return
  if (handler !== '') yield* checkName(context, handler, at)
  else
    yield error(
      'handler_missing',
      document.atKey(at),
      `${path} names no handler by its path: write "handler: name"`,
    )
}

function* checkName(
  { document, handlers, served }: CheckContext,
  handler: string,
  at: Path,
): Generator<Issue> {
  if (handlers === undefined || handlers.includes(handler)) return
  const written = [...at, 'handler']
  const position = document.has(written) ? document.at(written) : document.atKey(at)
  if (served?.includes(nameOf(at)) === false)
    return yield warning(
      'handler_unknown',
      position,
      `there is no handler "${handler}" yet: planned until it is loaded`,
    )
  const guess = didYouMean(handler, [...handlers, PROXY])
  const hint = guess || '; write it, name another under "handler", or set "planned: true"'
  yield error('handler_unknown', position, `there is no handler "${handler}"${hint}`)
}

/** The key of a route or name of a tool among those that are served. */
function nameOf([, key]: Path): string {
  return String(key).replace(/^GET /, '')
}

function* checkEndpoints(context: CheckContext, place: DeclaredPlace, owner: Owner): Generator<Issue> {
  const { route, path, at } = place
  yield* checkEndpoint(
    context,
    { parameters: compileSet(path, route.parameters, route.body), given: route.with ?? {}, at },
    owner,
  )
  const previewPath = samplePath(place)
  if (previewPath === undefined) return
  const sample = typeof route.sample === 'object' ? route.sample : {}
  // A sample without declarations of its own has the arguments of its route, unless its path loses a template.
  const isPlain = sample.parameters === undefined && sample.with === undefined
  if (isPlain && templatesOf(previewPath).join() === templatesOf(path).join()) return
  const parameters = compileSet(previewPath, sample.parameters ?? route.parameters, route.body)
  const given = sample.with ?? (sample.parameters === undefined ? route.with : undefined) ?? {}
  yield* checkEndpoint(context, { parameters, given, at: [...at, 'sample'] }, owner)
}

/** A route, sample or tool: the arguments it accepts from a caller and those it fixes. */
interface Endpoint {
  readonly parameters: readonly Parameter[]
  readonly given: Readonly<Record<string, Scalar>>
  readonly at: Path
}

function placeOf({ parameters, at }: Endpoint, name: string): Path {
  const inBody = parameters.some((each) => each.name === name && each.in === 'body')
  return [...at, ...(inBody ? ['body', 'properties'] : ['parameters']), name]
}

/** Compares the parameters and fixed arguments of one endpoint with the arguments of the handler. */
function* checkEndpoint(context: CheckContext, endpoint: Endpoint, owner: Owner): Generator<Issue> {
  const { document } = context
  const { parameters, given, at } = endpoint
  const misgiven = Object.entries(given).flatMap(([name, value]) => [
    ...checkGiven(context, endpoint, owner, name, value),
  ])
  // A misspelt argument is also missing, and a misspelt parameter is also unused.
  if (misgiven.length > 0) return yield* misgiven
  const { missing, unused } = bind(owner, parameters, given)
  const takes = owner.parameters.map(({ name }) => name).join(', ') || 'none'
  const passed = new Set([...parameters.map(({ name }) => name), ...Object.keys(given)])
  const absent = owner.parameters.map(({ name }) => name).filter((name) => !passed.has(name))
  const meant = new Set(unused.map((name) => suggest(name, missing)))
  for (const name of missing.filter((each) => !meant.has(each)))
    yield differ(
      document.atKey(at),
      `${owner.handler} needs "${name}" (declared by ${owner.path}): write it under parameters${at[0] === 'tools' ? '' : ', or under "with"'}`,
    )
  for (const name of unused)
    yield differ(
      document.atKey(placeOf(endpoint, name)),
      `the parameter "${name}" goes nowhere: ${owner.handler} takes ${takes}${didYouMean(name, absent)}`,
    )
  for (const parameter of parameters) yield* checkTaken(context, endpoint, owner, parameter)
}

function* checkGiven(
  { document }: CheckContext,
  { parameters, at }: Endpoint,
  owner: Owner,
  name: string,
  value: Scalar,
): Generator<Issue> {
  const place = [...at, 'with', name]
  const argument = owner.parameters.find((each) => each.name === name)
  if (argument === undefined) {
    const guess = didYouMean(
      name,
      owner.parameters.map((each) => each.name),
    )
    const message = `${owner.handler} takes no argument "${name}"${guess} (declared by ${owner.path})`
    yield differ(document.atKey(place), message)
    return
  }
  const position = document.at(place)
  const source = sourceOf(value)
  if (source === undefined) {
    const reason = misfit(argument, typeof value === 'string' ? value.replace(/^\$\$/, '$') : value)
    if (reason !== undefined) yield differ(position, `${name}: ${JSON.stringify(value)} ${reason}`)
    return
  }
  const parameter = parameters.find((each) => each.name === source)
  if (parameter === undefined) {
    const guess = didYouMean(
      source,
      parameters.map((each) => each.name),
    )
    yield error('parameter_undeclared', position, `$${source} is no parameter of this route${guess}`)
  } else if (!isPassable(parameter, argument)) {
    const message = `$${source} is ${parameter.type} here, but ${owner.handler} takes "${name}" as ${argument.type} (declared by ${owner.path})`
    yield differ(position, message)
  } else if (!isReliable(parameter, argument)) yield differ(position, unreliable(source, owner))
}

/** A parameter that is passed on by name has the handler's type, and is present when the handler requires it. */
function* checkTaken(
  { document }: CheckContext,
  endpoint: Endpoint,
  owner: Owner,
  parameter: Parameter,
): Generator<Issue> {
  const { name, type } = parameter
  const argument = owner.parameters.find((each) => each.name === name)
  if (argument === undefined || Object.hasOwn(endpoint.given, name)) return
  const place = placeOf(endpoint, name)
  if (!isPassable(parameter, argument)) {
    const message = `"${name}" is ${type} here and ${argument.type} at ${owner.path}`
    yield differ(document.at([...place, 'type']), message)
  } else if (!isReliable(parameter, argument)) yield differ(document.atKey(place), unreliable(name, owner))
}

/** Every endpoint must provide what the handler requires. */
function isReliable(parameter: Parameter, argument: Parameter): boolean {
  const [given, needed] = [parameter, argument].map((each) => each.required || each.default !== undefined)
  return given === true || needed !== true
}

function unreliable(name: string, owner: Owner): string {
  return `"${name}" may be missing here, but ${owner.handler} relies on it (declared by ${owner.path}): give it a default, or "required: true"`
}

function differ(position: Position, message: string): Issue {
  return error('handler_arguments_differ', position, message)
}
