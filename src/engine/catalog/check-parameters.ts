import { type Parameter, templatesOf } from './catalog.ts'
import { quoteIt } from './check-shape.ts'
import { error, type Issue, wordIn } from './issue.ts'
import { compileParameter, isOfType } from './parameter.ts'
import type { DeclaredParameter, DeclaredParameters } from './schema.ts'
import type { Path, SourceDocument } from './source.ts'
import { routesOf, samplePath, type Subject } from './subject.ts'
import { didYouMean } from './suggest.ts'
import { misfit } from './validator.ts'

/** Each parameter makes sense by itself: its constraints fit its type, its default and example fit its constraints. */
export function checkParameters(subject: Subject): Issue[] {
  const { declared } = subject
  const routes = routesOf(declared).flatMap((place) => {
    const { path, route, at } = place
    const sample = typeof route.sample === 'object' ? route.sample : undefined
    const own = checkSet(subject, path, route.parameters, [...at, 'parameters'])
    if (sample?.parameters === undefined) return own
    const twin = samplePath(place) ?? path
    return [...own, ...checkSet(subject, twin, sample.parameters, [...at, 'sample', 'parameters'])]
  })
  const tools = Object.entries(declared.tools ?? {}).flatMap(([name, tool]) =>
    checkSet(subject, '', tool.parameters, ['tools', name, 'parameters']),
  )
  return [...routes, ...tools]
}

/** Templates that are written as they should be: the others are told as faults of the path. */
function soundTemplates(path: string): string[] {
  const segments = path.split('/')
  return templatesOf(path).filter((name) => segments.includes(`{${name}}`) && /^[a-z][a-z0-9_]*$/.test(name))
}

function checkSet(subject: Subject, path: string, set: DeclaredParameters | undefined, at: Path): Issue[] {
  const { document } = subject
  const names = Object.keys(set ?? {})
  const templates = soundTemplates(path)
  const undeclared = templates
    .filter((name) => !names.includes(name))
    .map((name) => {
      const key = document.atKey(document.has(at) ? at : at.slice(0, -1))
      return error(
        'parameter_undeclared',
        at.length === 3 ? wordIn(document.atKey(at.slice(0, -1)), path, `{${name}}`) : key,
        `{${name}} of ${path} has no entry under parameters${didYouMean(name, names)}`,
      )
    })
  const each = Object.entries(set ?? {}).flatMap(([name, declared]) => {
    const parameter = compileParameter(name, templates.includes(name) ? 'path' : 'query', declared)
    return checkOne(subject, parameter, declared, [...at, name])
  })
  return [...undeclared, ...each]
}

function checkOne(subject: Subject, parameter: Parameter, declared: DeclaredParameter, at: Path): Issue[] {
  const { document } = subject
  const { name } = parameter
  const issues: Issue[] = checkConstraints(subject, parameter, declared, at)
  if (parameter.type === 'object' && at[0] === 'routes') {
    issues.push(
      error(
        'object_on_route',
        document.at([...at, 'type']),
        `${name} is an object, which no query can carry: declare it under tools, or take its JSON as a string`,
      ),
    )
  }
  if (parameter.in === 'path' && declared.required === false) {
    issues.push(
      error(
        'path_parameter_optional',
        document.at([...at, 'required']),
        `${name} stands in the path and is always given: remove "required"`,
      ),
    )
  }
  if (parameter.in === 'path' && declared.default !== undefined) {
    issues.push(
      error(
        'path_parameter_default',
        document.at([...at, 'default']),
        `${name} stands in the path and is always given: remove the default`,
      ),
    )
  }
  if (parameter.in === 'query' && declared.required === true && declared.default !== undefined) {
    issues.push(
      error(
        'required_with_default',
        document.at([...at, 'default']),
        `${name} is required, so its default is never used; keep one of the two`,
      ),
    )
  }
  const contradicts = issues.some(({ code }) => code === 'required_with_default')
  if (parameter.required && parameter.example === undefined && !contradicts) {
    issues.push(
      error(
        'example_missing',
        document.atHome(at),
        `${name} is required and needs an example: agents and registries call with it`,
      ),
    )
  }
  // What a default is held against has to be right first.
  if (issues.some(({ code }) => CONSTRAINT_CODES.has(code))) return issues
  return [
    ...issues,
    ...checkValue(subject, parameter, 'default', at),
    ...checkValue(subject, parameter, 'example', at),
  ]
}

const CONSTRAINT_CODES: ReadonlySet<string> = new Set([
  'constraint_misplaced',
  'pattern_invalid',
  'range_empty',
  'enum_type',
  'quote_it',
])
const NUMBERS = ['minimum', 'maximum', 'exclusiveMinimum'] as const
const TEXTS = ['minLength', 'maxLength', 'pattern', 'format', 'list', 'aliases'] as const

function checkConstraints(
  { document }: Subject,
  parameter: Parameter,
  declared: DeclaredParameter,
  at: Path,
): Issue[] {
  const text = parameter.type === 'string'
  const bare = parameter.type === 'boolean' || parameter.type === 'object'
  const misplaced = (text ? NUMBERS : bare ? [...NUMBERS, ...TEXTS] : TEXTS)
    .filter((key) => declared[key] !== undefined)
    .map((key) =>
      error(
        'constraint_misplaced',
        document.atKey([...at, key]),
        `"${key}" says nothing about a parameter of type ${parameter.type}: remove it, or change the type`,
      ),
    )
  const issues: Issue[] = [...misplaced]
  const { pattern } = declared
  const { list } = declared
  issues.push(
    ...checkRange(document, at, declared, 'minimum', 'maximum'),
    ...checkRange(document, at, declared, 'exclusiveMinimum', 'maximum'),
    ...checkRange(document, at, declared, 'minLength', 'maxLength'),
    ...checkRange(document, [...at, 'list'], list ?? {}, 'min_items', 'max_items'),
    ...checkRange(document, [...at, 'list'], list ?? {}, 'minimum', 'maximum'),
  )
  if (pattern !== undefined && !isPattern(pattern)) {
    issues.push(
      error('pattern_invalid', document.at([...at, 'pattern']), `${pattern} is not a regular expression`),
    )
  }
  for (const [index, value] of (declared.enum ?? []).entries()) {
    if (isOfType(parameter.type, value)) continue
    const place = [...at, 'enum', index]
    const spelling = document.spelling(place)
    issues.push(
      text && spelling !== undefined
        ? quoteIt(spelling, value, document.at(place))
        : error('enum_type', document.at(place), `${String(value)} is not of type ${parameter.type}`),
    )
  }
  for (const [alias, value] of Object.entries(declared.aliases ?? {})) {
    if (declared.enum === undefined || declared.enum.includes(value)) continue
    issues.push(
      error(
        'alias_unknown',
        document.at([...at, 'aliases', alias]),
        `"${alias}" stands for "${value}", which enum does not allow${didYouMean(value, declared.enum.map(String))}`,
      ),
    )
  }
  return issues
}

function checkValue(
  { document }: Subject,
  parameter: Parameter,
  key: 'default' | 'example',
  at: Path,
): Issue[] {
  const value = parameter[key]
  if (value === undefined) return []
  const place = [...at, key]
  const spelling = document.spelling(place)
  if (parameter.type === 'string' && typeof value !== 'string' && spelling !== undefined) {
    return [quoteIt(spelling, value, document.at(place))]
  }
  const reason = key === 'example' && value === '' ? 'shows nothing: leave it out' : misfit(parameter, value)
  if (reason === undefined) return []
  const hint = parameter.enum === undefined ? '' : didYouMean(String(value), parameter.enum.map(String))
  return [
    error(
      `${key}_invalid`,
      document.at(place),
      `${key} of ${parameter.name}: ${JSON.stringify(value)} ${reason}${hint}`,
    ),
  ]
}

function checkRange<Low extends string, High extends string>(
  document: SourceDocument,
  at: Path,
  limits: Readonly<Partial<Record<Low | High, number>>>,
  low: Low,
  high: High,
): Issue[] {
  const [from, to] = [limits[low], limits[high]]
  if (from === undefined || to === undefined) return []
  const open = low === 'exclusiveMinimum'
  if (open ? from < to : from <= to) return []
  const place = document.at([...at, low])
  return [
    error(
      'range_empty',
      place,
      `no value fits: ${low} ${from} is ${open ? 'not below' : 'above'} ${high} ${to}`,
    ),
  ]
}

function isPattern(pattern: string): boolean {
  try {
    new RegExp(pattern, 'u')
    return true
  } catch {
    return false
  }
}
