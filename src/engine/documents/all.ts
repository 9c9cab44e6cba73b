import type { Document } from './document.ts'

/** Every document the engine can render. */
export const documents: readonly Document[] = []

/** Served under `documents` like the others, but answered live. */
export const liveDocuments = ['health'] as const

export const documentNames: readonly string[] = [...documents.map(({ name }) => name), ...liveDocuments]
