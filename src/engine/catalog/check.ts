import { checkBodies } from './check-body.ts'
import { checkDiscovery } from './check-discovery.ts'
import { type CheckContext, type CheckInputs, withDefaults } from './check-context.ts'
import { checkHandlers } from './check-handlers.ts'
import { checkParameters } from './check-parameters.ts'
import { checkPaths } from './check-paths.ts'
import { checkPayments } from './check-payments.ts'
import { checkPrices } from './check-prices.ts'
import { checkProxies } from './check-proxies.ts'
import { checkReferences } from './check-references.ts'
import { checkShape } from './check-shape.ts'
import { hasErrors, type Issue } from './issue.ts'
import { parse } from './parse.ts'

export type Checked =
  | { readonly kind: 'sound'; readonly context: CheckContext; readonly issues: readonly Issue[] }
  | { readonly kind: 'unsound'; readonly issues: readonly Issue[] }

const RULES: readonly ((context: CheckContext) => Iterable<Issue>)[] = [
  checkPrices,
  checkPaths,
  checkParameters,
  checkBodies,
  checkHandlers,
  checkProxies,
  checkReferences,
  checkPayments,
  checkDiscovery,
]

/**
 * Finds everything wrong with a catalog text at once: syntax, then shape, then sense, in the order of the file.
 * A file that is not readable YAML is not judged further, for it does not say what it seems to say.
 */
export function check(text: string, inputs: CheckInputs): Checked {
  const { document, issues: syntax, readable } = parse(text)
  if (!readable) return { kind: 'unsound', issues: inOrder(syntax) }
  const shape = checkShape(document)
  const found = [...syntax, ...firstOfEachPlace(shape.issues)]
  if (shape.declared === undefined) return { kind: 'unsound', issues: inOrder(found) }
  const context = { ...inputs, declared: shape.declared, document: withDefaults(document) }
  const said = new Set(found.filter(isAboutValue).map(placeOf))
  const sense = RULES.flatMap((rule) => [...rule(context)]).filter((issue) => !said.has(placeOf(issue)))
  const issues = inOrder([...found, ...sense])
  return hasErrors(issues) ? { kind: 'unsound', issues } : { kind: 'sound', context, issues }
}

/** A value that breaks its schema in two ways is one error; each missing key is reported, at its owner. */
function firstOfEachPlace(issues: readonly Issue[]): Issue[] {
  const seen = new Set<string>()
  return issues.filter(
    (issue) => !isAboutValue(issue) || (!seen.has(placeOf(issue)) && seen.add(placeOf(issue))),
  )
}

function isAboutValue({ code }: Issue): boolean {
  return !code.endsWith('_missing') || code === 'value_missing'
}

function placeOf({ position }: Issue): string {
  return `${position.line}:${position.column}`
}

/** In the order of the file; what is said of one place through several aliases is said once. */
function inOrder(issues: readonly Issue[]): Issue[] {
  const seen = new Map(issues.map((issue) => [`${placeOf(issue)} ${issue.code} ${issue.message}`, issue]))
  return [...seen.values()].sort(
    (a, b) =>
      a.position.line - b.position.line ||
      a.position.column - b.position.column ||
      a.code.localeCompare(b.code),
  )
}
