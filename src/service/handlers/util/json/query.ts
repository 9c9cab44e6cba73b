import { FunctionExpressionType, JSONPathEnvironment, JSONPathError, jsonpath } from 'json-p3'
import type { FilterFunction, JSONValue } from 'json-p3'
import { InvalidParameter } from 'ratecard/handler'
import type { Json, JsonObject, Warning } from 'ratecard/handler'
import { MAX_DEPTH } from './scan.ts'
import { compilePattern } from './pattern.ts'
import type { Pattern } from './pattern.ts'

export interface Selection {
  readonly nodes: readonly JsonObject[]
  readonly warnings: readonly Warning[]
}

/**
 * Selects with a JSONPath (RFC 9535): the normalized path and the value of every node, in the order of the standard.
 * Written for a document of at most 64 levels.
 */
export function query(document: Json, path: string): Selection {
  const refused = new Set<string>()
  const environment = new JSONPathEnvironment({ maxRecursionDepth: MAX_DEPTH + 2 })
  for (const kind of ['match', 'search'] as const) {
    environment.functionRegister.set(kind, regularExpression(kind, refused))
  }
  try {
    // the library reads the document and never writes, its type is only wider than ours
    const nodes = [...environment.query(path, document as JSONValue)].map((node) => ({
      path: node.getPath({ form: 'canonical' }),
      value: node.value as Json,
    }))
    return { nodes, warnings: [...refused].map(refusal) }
  } catch (error) {
    if (!(error instanceof JSONPathError)) throw error
    const position = error.token.index
    throw new InvalidParameter('schema', `schema is not a valid JSONPath at position ${position}`, {
      position,
    })
  }
}

/** The filter functions of RFC 9535 §2.4.6 and §2.4.7, on an engine that takes linear time. */
function regularExpression(kind: 'match' | 'search', refused: Set<string>): FilterFunction {
  const compiled = new Map<string, Pattern | undefined>()
  return {
    argTypes: [FunctionExpressionType.ValueType, FunctionExpressionType.ValueType],
    returnType: FunctionExpressionType.LogicalType,
    call(text: unknown, source: unknown): boolean {
      if (typeof text !== 'string' || typeof source !== 'string') return false
      if (!compiled.has(source)) compiled.set(source, compileInteroperable(source))
      const pattern = compiled.get(source)
      if (pattern === undefined) refused.add(source)
      return pattern?.[kind](text) ?? false
    },
  }
}

/** Compiles an I-Regexp (RFC 9485), in which the dot matches neither line end; undefined when invalid. */
function compileInteroperable(source: string): Pattern | undefined {
  if (!isInteroperable(source)) return undefined
  return compilePattern(
    source.replaceAll(/\\.|\[(?:\\.|[^\]])*\]|\./gs, (part) => (part === '.' ? '[^\\n\\r]' : part)),
  )
}

function isInteroperable(source: string): boolean {
  try {
    // the library keeps its syntax check to itself; on the empty text no pattern takes long
    new jsonpath.functions.Match({ throwErrors: true, cacheSize: 0 }).call('', source)
    return true
  } catch {
    return false
  }
}

function refusal(source: string): Warning {
  const shown = source.length > 80 ? `${source.slice(0, 80)}…` : source
  return {
    code: 'pattern_not_interoperable',
    message: `The pattern '${shown}' is no I-Regexp (RFC 9485), so it matches nothing`,
  }
}
