import type { SourceFigures } from '../../engine/index.ts'

/** Counts what becomes of the questions to one source. */
export class SourceRecord {
  readonly #now: () => Date
  #figures: SourceFigures = { asked: 0, failed: 0, drifted: 0, lastDrift: undefined }

  constructor(now: () => Date) {
    this.#now = now
  }

  get figures(): SourceFigures {
    return this.#figures
  }

  countAsked(): void {
    this.#figures = { ...this.#figures, asked: this.#figures.asked + 1 }
  }

  countFailed(): void {
    this.#figures = { ...this.#figures, failed: this.#figures.failed + 1 }
  }

  /** `where` names fields, as `whereItDiffers` says them. */
  countDrifted(where: string): void {
    const lastDrift = { at: this.#now(), where }
    this.#figures = { ...this.#figures, drifted: this.#figures.drifted + 1, lastDrift }
  }
}

/**
 * The records of all sources, by their key under `sources:` in the catalog.
 *
 * @example
 * const records = new SourceRecords(now)
 * new JsonSource(options, world, records.of('steam-store'))
 * records.figures().get('steam-store') // { asked: 12, failed: 0, drifted: 1, lastDrift: { … } }
 */
export class SourceRecords {
  readonly #now: () => Date
  readonly #records = new Map<string, SourceRecord>()

  constructor(now: () => Date) {
    this.#now = now
  }

  of(key: string): SourceRecord {
    const record = this.#records.get(key) ?? new SourceRecord(this.#now)
    this.#records.set(key, record)
    return record
  }

  figures(): ReadonlyMap<string, SourceFigures> {
    return new Map(Array.from(this.#records, ([key, record]) => [key, record.figures] as const))
  }
}
