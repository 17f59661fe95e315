import WebSocket from 'ws';

class ParallaxAgent {
  private ws: WebSocket;
  private heartbeatInterval: NodeJS.Timeout;

  async connect() {
    this.ws = new WebSocket('wss://parallax.example.com/ws/agent', {
      headers: {
        'Authorization': `Bearer ${this.token}`,
      },
    });

    this.ws.on('open', () => this.register());
    this.ws.on('message', (data) => this.handleMessage(JSON.parse(data)));
    this.ws.on('close', () => this.reconnect());
  }

  private register() {
    this.send({
      type: 'register',
      id: this.generateId(),
      timestamp: new Date().toISOString(),
      payload: {
        capabilities: this.capabilities,
        metadata: this.metadata,
      },
    });
  }

  private handleMessage(msg: Message) {
    switch (msg.type) {
      case 'registered':
        this.startHeartbeat();
        break;
      case 'task':
        this.handleTask(msg.payload);
        break;
      case 'task_cancelled':
        this.cancelTask(msg.payload.taskId);
        break;
    }
  }

  private async handleTask(task: Task) {
    try {
      const result = await this.processTask(task);
      this.send({
        type: 'task_result',
        id: this.generateId(),
        timestamp: new Date().toISOString(),
        payload: {
          taskId: task.taskId,
          executionId: task.executionId,
          status: 'completed',
          result,
        },
      });
    } catch (error) {
      this.send({
        type: 'task_error',
        id: this.generateId(),
        timestamp: new Date().toISOString(),
        payload: {
          taskId: task.taskId,
          executionId: task.executionId,
          error: {
            code: 'PROCESSING_ERROR',
            message: error.message,
          },
          retryable: true,
        },
      });
    }
  }

  private startHeartbeat() {
    this.heartbeatInterval = setInterval(() => {
      this.send({
        type: 'heartbeat',
        id: this.generateId(),
        timestamp: new Date().toISOString(),
        payload: {
          status: 'healthy',
          activeTasks: this.activeTasks.size,
        },
      });
    }, 10000);
  }

  private send(msg: Message) {
    this.ws.send(JSON.stringify(msg));
  }
}
