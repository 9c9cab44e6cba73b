declare module 'koa-mount' {
  import type Koa from 'koa'

  export default function mount(path: string, app: Koa): Koa.Middleware
}
