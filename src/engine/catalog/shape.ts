/**
 * The type of the data a JSON Schema describes, for the few keywords the catalog's schema uses: the schema is the
 * one place where the shape is written, and the compiler reads it from there.
 */
export type Shape<S> = S extends { readonly const: infer C }
  ? C
  : S extends { readonly enum: readonly (infer E)[] }
    ? E
    : S extends { readonly type: infer T }
      ? T extends readonly (infer U)[]
        ? OfType<U, S>
        : OfType<T, S>
      : unknown

type OfType<T, S> = T extends 'string'
  ? string
  : T extends 'integer' | 'number'
    ? number
    : T extends 'boolean'
      ? boolean
      : T extends 'array'
        ? S extends { readonly items: infer I }
          ? readonly Shape<I>[]
          : readonly unknown[]
        : T extends 'object'
          ? ObjectShape<S>
          : never

type ObjectShape<S> = S extends { readonly properties: infer P }
  ? { readonly [K in keyof P as K extends Required<S> ? K : never]: Shape<P[K]> } & {
      readonly [K in keyof P as K extends Required<S> ? never : K]?: Shape<P[K]>
    }
  : S extends { readonly additionalProperties: infer A }
    ? A extends false
      ? Record<never, never>
      : { readonly [key: string]: Shape<A> }
    : { readonly [key: string]: unknown }

type Required<S> = S extends { readonly required: readonly (infer R)[] } ? R : never
