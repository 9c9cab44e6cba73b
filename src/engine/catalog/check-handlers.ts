import { templatesOf, type Parameter, type Scalar } from './catalog.ts'
import { error, type Issue } from './issue.ts'
import { bind, compileSet, ownersOf, sourceOf, type Owner } from './arguments.ts'
import { misfit } from './parameter.ts'
import type { Path } from './parse.ts'
import { handlerOf, PROXY, routesOf, samplePath, type DeclaredPlace, type Subject } from './subject.ts'
import { didYouMean } from './suggest.ts'

/** Every route has a handler, and every face of it gives the handler the arguments it was declared with. */
export function checkHandlers(subject: Subject): Issue[] {
  const owners = ownersOf(subject.declared)
  return routesOf(subject.declared).flatMap((place) => [
    ...checkHandler(subject, place),
    ...checkProxy(subject, place),
    ...checkFaces(subject, place, owners.get(handlerOf(place))),
  ])
}

function checkHandler({ document, handlers }: Subject, place: DeclaredPlace): Issue[] {
  const handler = handlerOf(place)
  if (
    handlers === undefined ||
    place.route.planned === true ||
    handler === PROXY ||
    handlers.includes(handler)
  )
    return []
  const written = place.route.handler !== undefined
  const at = written ? document.at([...place.at, 'handler']) : document.atKey(place.at)
  const guess = didYouMean(handler, [...handlers, PROXY])
  const hint = guess === '' ? '; write it, name another under "handler", or set "planned: true"' : guess
  return [error('handler_unknown', at, `there is no handler "${handler}"${hint}`)]
}

function checkProxy({ document }: Subject, place: DeclaredPlace): Issue[] {
  const { route, at, path } = place
  if (handlerOf(place) !== PROXY) {
    return (['upstream', 'credential'] as const)
      .filter((key) => route[key] !== undefined)
      .map((key) =>
        error('key_misplaced', document.atKey([...at, key]), `"${key}" belongs to handler: proxy`),
      )
  }
  if (route.upstream === undefined) {
    return [
      error(
        'upstream_missing',
        document.atKey(at),
        `${path} is a proxy and needs "upstream": the address it calls`,
      ),
    ]
  }
  const position = document.at([...at, 'upstream'])
  if (!URL.canParse(route.upstream.replace(/\{[^{}]*\}/g, 'x'))) {
    return [error('upstream_invalid', position, 'this is not an address')]
  }
  const known = Object.keys(route.parameters ?? {})
  return templatesOf(route.upstream.slice(route.upstream.indexOf('//') + 2))
    .filter((name) => !known.includes(name))
    .map((name) =>
      error(
        'parameter_undeclared',
        position,
        `{${name}} of the upstream has no entry under parameters${didYouMean(name, known)}`,
      ),
    )
}

function checkFaces(subject: Subject, place: DeclaredPlace, owner: Owner | undefined): Issue[] {
  if (owner === undefined) return []
  const { route, path, at } = place
  const own = compileSet(path, route.parameters)
  const issues = owner.path === path ? [] : checkFace(subject, own, route.with, owner, at)
  const twin = samplePath(place)
  if (twin === undefined) return issues
  const sample = typeof route.sample === 'object' ? route.sample : {}
  const shown = sample.parameters === undefined ? own : compileSet(twin, sample.parameters)
  const given = sample.with ?? (sample.parameters === undefined ? route.with : undefined)
  return [...issues, ...checkFace(subject, shown, given, owner, [...at, 'sample'])]
}

/** One face’s parameters and fixed arguments, held against what the handler takes. */
function checkFace(
  { document }: Subject,
  parameters: readonly Parameter[],
  given: Readonly<Record<string, Scalar>> | undefined,
  owner: Owner,
  at: Path,
): Issue[] {
  const differ = (place: Path, sentence: string): Issue =>
    error('handler_arguments_differ', document.atKey(place), sentence)
  const names = owner.parameters.map(({ name }) => name)
  const issues = Object.entries(given ?? {}).flatMap(([name, value]) => {
    const place = [...at, 'with', name]
    const argument = owner.parameters.find((parameter) => parameter.name === name)
    if (argument === undefined) {
      return [
        differ(
          place,
          `${owner.handler} takes no argument "${name}"${didYouMean(name, names)} (declared by ${owner.path})`,
        ),
      ]
    }
    const source = sourceOf(value)
    if (source === undefined) {
      const reason = misfit(argument, typeof value === 'string' ? value.replace(/^\$\$/, '$') : value)
      return reason === undefined ? [] : [differ(place, `${name}: ${JSON.stringify(value)} ${reason}`)]
    }
    if (parameters.some((parameter) => parameter.name === source)) return []
    const near = didYouMean(
      source,
      parameters.map((parameter) => parameter.name),
    )
    return [
      error('parameter_undeclared', document.at(place), `$${source} is no parameter of this route${near}`),
    ]
  })
  const { missing, unused } = bind(owner, parameters, given)
  return [
    ...issues,
    ...missing.map((name) =>
      differ(at, `${owner.handler} needs "${name}", which neither a parameter nor "with" gives`),
    ),
    ...unused.map((name) =>
      differ(
        at,
        `the parameter "${name}" goes nowhere: ${owner.handler} takes ${names.join(', ') || 'none'}`,
      ),
    ),
    ...parameters.flatMap((parameter) => {
      const argument = owner.parameters.find(({ name }) => name === parameter.name)
      if (
        argument === undefined ||
        argument.type === parameter.type ||
        Object.hasOwn(given ?? {}, parameter.name)
      )
        return []
      return [
        differ(at, `"${parameter.name}" is ${parameter.type} here and ${argument.type} at ${owner.path}`),
      ]
    }),
  ]
}
