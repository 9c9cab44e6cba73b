import type { Catalog } from '../catalog/catalog.ts'

/** What a reader is told of a document before opening it. */
interface Description {
  readonly title: string
  readonly summary: string
  /** Media type, with charset where it has one. */
  readonly type: string
}

const JSON_TYPE = 'application/json; charset=utf-8'
export const PAGE_TYPE = 'text/html; charset=utf-8'

/**
 * Every document by its name under `documents` in the catalog. It stands apart from the functions that render, so
 * that a document can point at the others without importing them.
 */
export const DIRECTORY = {
  index: {
    title: 'Index of endpoints (JSON)',
    summary: 'Every endpoint with its price and parameters, and how to pay.',
    type: JSON_TYPE,
  },
  openapi: {
    title: 'OpenAPI 3.1',
    summary: 'Parameters, answers, errors and prices in full.',
    type: JSON_TYPE,
  },
  llms: {
    title: 'Guide for language models',
    summary: 'How to pay, and what each endpoint is for.',
    type: 'text/plain; charset=utf-8',
  },
  'x402-resources': {
    title: 'x402 resource listing',
    summary: 'What is sold, with the payment requirements of each endpoint.',
    type: JSON_TYPE,
  },
  docs: {
    title: 'Documentation',
    summary: 'Every endpoint with its price, parameters and an example.',
    type: PAGE_TYPE,
  },
  'docs-md': {
    title: 'Documentation in Markdown',
    summary: 'The same in plain text.',
    type: 'text/markdown; charset=utf-8',
  },
  'docs-errors': {
    title: 'Errors',
    summary: 'Every error by its code: what it means and what to do.',
    type: PAGE_TYPE,
  },
  privacy: {
    title: 'Privacy',
    summary: 'What is kept of a request and a payment, and for how long.',
    type: PAGE_TYPE,
  },
  health: { title: 'Health', summary: 'Whether the service is up.', type: JSON_TYPE },
  'status-json': {
    title: 'Status (JSON)',
    summary: 'Whether every route answers, how fast, and how the outside sources do.',
    type: JSON_TYPE,
  },
  status: {
    title: 'Status',
    summary: 'Whether every route answers, how fast, and how the outside sources do.',
    type: PAGE_TYPE,
  },
  stats: {
    title: 'Figures',
    summary: 'How many routes there are, and how often they were called in the last seven days.',
    type: JSON_TYPE,
  },
} as const satisfies Record<string, Description>

export type DocumentName = keyof typeof DIRECTORY

function isDocumentName(name: string): name is DocumentName {
  return Object.hasOwn(DIRECTORY, name)
}

/** A document that is served, with the places it is served at. */
export interface PlacedDocument extends Description {
  readonly name: DocumentName
  readonly paths: readonly string[]
  /** Absolute address of the first place. */
  readonly url: string
}

/** The documents the catalog gives a place to, in its order; announced ones are left out. */
export function placedDocuments(catalog: Catalog, baseUrl: string): PlacedDocument[] {
  return Object.entries(catalog.documents).flatMap(([name, { paths, planned }]) => {
    const [first] = paths
    if (planned || first === undefined || !isDocumentName(name)) return []
    return [{ name, paths, url: baseUrl + first, ...DIRECTORY[name] }]
  })
}
