declare module 'swagger-ui-dist/swagger-ui-es-bundle.js' {
  export type ViewerRequest = { url: string; headers: Record<string, string> }
  type Options = {
    domNode: Element
    spec: object
    validatorUrl: null
    docExpansion: 'none'
    defaultModelsExpandDepth: number
    filter: boolean
    displayRequestDuration: boolean
    showMutatedRequest: boolean
    supportedSubmitMethods: readonly string[]
    requestInterceptor: (request: ViewerRequest) => ViewerRequest | Promise<ViewerRequest>
  }
  const SwaggerUI: (options: Options) => unknown
  export default SwaggerUI
}
