import type { JsonObject } from '../../json.ts'
import type { DocumentName } from '../directory.ts'
import { agentCardTestimony } from './card-testimony.ts'
import { llmsFullTestimony, llmsTestimony, manualTestimony, pageTestimony } from './guide-testimonies.ts'
import {
  categoriesTestimony,
  indexTestimony,
  manifestTestimony,
  resourcesTestimony,
} from './listing-testimonies.ts'
import { openapiTestimony } from './openapi-testimony.ts'
import { readObject } from './spelling.ts'
import type { Testimony } from './testimony.ts'

export type Reading =
  | { readonly kind: 'says'; readonly testimony: Testimony }
  /** It speaks of no route. */
  | { readonly kind: 'silent' }
  /** It should be a JSON object. */
  | { readonly kind: 'unreadable' }

const JSON_READERS: Readonly<
  Partial<Record<DocumentName, (document: string, value: JsonObject) => Testimony>>
> = {
  index: indexTestimony,
  openapi: openapiTestimony,
  categories: categoriesTestimony,
  x402: manifestTestimony,
  'x402-resources': resourcesTestimony,
  'agent-card': agentCardTestimony,
}

const TEXT_READERS: Readonly<Partial<Record<DocumentName, (document: string, text: string) => Testimony>>> = {
  llms: llmsTestimony,
  'llms-full': llmsFullTestimony,
  'docs-md': manualTestimony,
  docs: pageTestimony,
}

/** Documents that speak of routes, the one that the others defer to first. */
export const SPEAKING: readonly DocumentName[] = [
  'openapi',
  'index',
  'categories',
  'x402',
  'x402-resources',
  'agent-card',
  'llms',
  'llms-full',
  'docs-md',
  'docs',
]

/** What the document of that name says, under the path it is served at. */
export function readDocument(name: DocumentName, path: string, text: string): Reading {
  const [readJson, readText] = [JSON_READERS[name], TEXT_READERS[name]]
  if (readText !== undefined) return { kind: 'says', testimony: readText(path, text) }
  if (readJson === undefined) return { kind: 'silent' }
  const value = readObject(text)
  return value === undefined ? { kind: 'unreadable' } : { kind: 'says', testimony: readJson(path, value) }
}
