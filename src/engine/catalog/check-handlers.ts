import { bind, compileSet, ownDeclaration, type Owner, ownersOf, sourceOf } from './arguments.ts'
import { type Parameter, type Scalar, templatesOf } from './catalog.ts'
import { error, type Issue, type Position, wordIn } from './issue.ts'
import { isPassable } from './parameter.ts'
import type { Path } from './source.ts'
import { type DeclaredPlace, handlerOf, PROXY, routesOf, samplePath, type Subject } from './subject.ts'
import { didYouMean, suggest } from './suggest.ts'
import { misfit } from './validator.ts'

/** Every route has a handler, and every face of it gives the handler the arguments it was declared with. */
export function checkHandlers(subject: Subject): Issue[] {
  const { declared } = subject
  const owners = ownersOf(declared)
  const routes = routesOf(declared).flatMap((place) => [
    ...checkHandler(subject, place),
    ...checkProxy(subject, place),
    ...checkFaces(subject, place, ownerOf(owners, place)),
  ])
  const tools = Object.entries(declared.tools ?? {}).flatMap(([name, tool]) => {
    const [at, handler] = [['tools', name], tool.handler ?? name]
    const owner = owners.get(handler)
    const face = { parameters: compileSet('', tool.parameters), given: undefined, at }
    return [
      ...(tool.planned === true ? [] : checkName(subject, handler, at)),
      ...(owner === undefined ? [] : checkFace(subject, face, owner)),
    ]
  })
  return [...routes, ...tools]
}

function checkHandler(subject: Subject, place: DeclaredPlace): Issue[] {
  const { route, path, at } = place
  const handler = handlerOf(place)
  if (route.planned === true || handler === PROXY) return []
  if (route.handler !== undefined) return checkName(subject, handler, at)
  // Where a priced path stands elsewhere than under /paid/, the handler it names by itself changes with it.
  if (!path.startsWith('/paid/') && subject.document.spelling([...at, 'price']) !== 'free') return []
  if (handler !== '') return checkName(subject, handler, at)
  const sentence = `${path} names no handler by its path: write "handler: name"`
  return [error('handler_missing', subject.document.atKey(at), sentence)]
}

function checkName({ document, handlers }: Subject, handler: string, at: Path): Issue[] {
  if (handlers === undefined || handlers.includes(handler)) return []
  const written = [...at, 'handler']
  const position = document.has(written) ? document.at(written) : document.atKey(at)
  const guess = didYouMean(handler, [...handlers, PROXY])
  const hint = guess === '' ? '; write it, name another under "handler", or set "planned: true"' : guess
  return [error('handler_unknown', position, `there is no handler "${handler}"${hint}`)]
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
    return [
      error('upstream_invalid', position, 'must be a whole address, such as https://internal.example/prices'),
    ]
  }
  const known = ownDeclaration(place).parameters.map(({ name }) => name)
  const host = route.upstream.replace(/^https?:\/\//, '').split(/[/?#]/)[0] ?? ''
  const [inHost] = templatesOf(host)
  if (inHost !== undefined) {
    const message = `{${inHost}} stands in the host, so that a buyer could choose where the request and its credential go; parameters belong in the path or the query`
    return [error('upstream_invalid', wordIn(position, route.upstream, `{${inHost}}`), message)]
  }
  return templatesOf(route.upstream.slice(route.upstream.indexOf('//') + 2))
    .filter((name) => !known.includes(name))
    .map((name) =>
      error(
        'parameter_undeclared',
        wordIn(position, route.upstream ?? '', `{${name}}`),
        `{${name}} of the upstream has no entry under parameters${didYouMean(name, known)}`,
      ),
    )
}

function ownerOf(owners: ReadonlyMap<string, Owner>, place: DeclaredPlace): Owner {
  return owners.get(handlerOf(place)) ?? ownDeclaration(place)
}

function checkFaces(subject: Subject, place: DeclaredPlace, owner: Owner): Issue[] {
  const { route, path, at } = place
  const own = compileSet(path, route.parameters)
  const issues = checkFace(subject, { parameters: own, given: route.with, at }, owner)
  const twin = samplePath(place)
  if (twin === undefined) return issues
  const sample = typeof route.sample === 'object' ? route.sample : {}
  const shown = compileSet(twin, sample.parameters ?? route.parameters)
  const given = sample.with ?? (sample.parameters === undefined ? route.with : undefined)
  // A sample that declares nothing of its own takes what its route takes, unless its path loses a template.
  const plain = sample.parameters === undefined && sample.with === undefined
  if (plain && templatesOf(twin).join() === templatesOf(path).join()) return issues
  return [...issues, ...checkFace(subject, { parameters: shown, given, at: [...at, 'sample'] }, owner)]
}

interface Face {
  readonly parameters: readonly Parameter[]
  readonly given: Readonly<Record<string, Scalar>> | undefined
  readonly at: Path
}

/** One face's parameters and fixed arguments, held against what the handler takes. */
function checkFace(subject: Subject, face: Face, owner: Owner): Issue[] {
  const { document } = subject
  const given = Object.entries(face.given ?? {}).flatMap(([name, value]) =>
    checkGiven(subject, face, owner, name, value),
  )
  // An argument that is misspelt is also missing, and a parameter that is misspelt is also unused.
  if (given.length > 0) return given
  const { missing, unused } = bind(owner, face.parameters, face.given)
  const takes = owner.parameters.map(({ name }) => name).join(', ') || 'none'
  const idle = unused.map((name) =>
    differ(
      document.atKey([...face.at, 'parameters', name]),
      `the parameter "${name}" goes nowhere: ${owner.handler} takes ${takes}${didYouMean(name, missing)}`,
    ),
  )
  const meant = new Set(unused.map((name) => suggest(name, missing)))
  const needed = missing
    .filter((name) => !meant.has(name))
    .map((name) =>
      differ(
        document.atKey(face.at),
        `${owner.handler} needs "${name}" (declared by ${owner.path}): write it under parameters${face.at[0] === 'tools' ? '' : ', or under "with"'}`,
      ),
    )
  return [
    ...needed,
    ...idle,
    ...face.parameters.flatMap((parameter) => checkTaken(subject, face, owner, parameter)),
  ]
}

function checkGiven({ document }: Subject, face: Face, owner: Owner, name: string, value: Scalar): Issue[] {
  const place = [...face.at, 'with', name]
  const argument = owner.parameters.find((parameter) => parameter.name === name)
  if (argument === undefined) {
    const guess = didYouMean(
      name,
      owner.parameters.map((parameter) => parameter.name),
    )
    const sentence = `${owner.handler} takes no argument "${name}"${guess} (declared by ${owner.path})`
    return [differ(document.atKey(place), sentence)]
  }
  const source = sourceOf(value)
  if (source === undefined) {
    const reason = misfit(argument, typeof value === 'string' ? value.replace(/^\$\$/, '$') : value)
    return reason === undefined
      ? []
      : [differ(document.at(place), `${name}: ${JSON.stringify(value)} ${reason}`)]
  }
  const parameter = face.parameters.find((each) => each.name === source)
  if (parameter === undefined) {
    const names = face.parameters.map((each) => each.name)
    const sentence = `$${source} is no parameter of this route${didYouMean(source, names)}`
    return [error('parameter_undeclared', document.at(place), sentence)]
  }
  if (!isPassable(parameter, argument)) {
    const sentence = `$${source} is ${parameter.type} here, but ${owner.handler} takes "${name}" as ${argument.type} (declared by ${owner.path})`
    return [differ(document.at(place), sentence)]
  }
  return isReliable(parameter, argument) ? [] : [differ(document.at(place), unreliable(source, owner))]
}

/** A parameter that is passed on by its name has the handler's type, and is there whenever the handler relies on it. */
function checkTaken({ document }: Subject, face: Face, owner: Owner, parameter: Parameter): Issue[] {
  const { name } = parameter
  const argument = owner.parameters.find((each) => each.name === name)
  if (argument === undefined || Object.hasOwn(face.given ?? {}, name)) return []
  const place = [...face.at, 'parameters', name]
  if (!isPassable(parameter, argument)) {
    const sentence = `"${name}" is ${parameter.type} here and ${argument.type} at ${owner.path}`
    return [differ(document.at([...place, 'type']), sentence)]
  }
  return isReliable(parameter, argument) ? [] : [differ(document.atKey(place), unreliable(name, owner))]
}

/** What the handler can rely on has to be given by every face. */
function isReliable(parameter: Parameter, argument: Parameter): boolean {
  const [given, needed] = [parameter, argument].map((each) => each.required || each.default !== undefined)
  return given === true || needed !== true
}

function unreliable(name: string, owner: Owner): string {
  return `"${name}" may be missing here, but ${owner.handler} relies on it (declared by ${owner.path}): give it a default, or "required: true"`
}

function differ(position: Position, sentence: string): Issue {
  return error('handler_arguments_differ', position, sentence)
}
